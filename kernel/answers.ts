import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** Answers that are under way on the connections of a listener. */
export interface Answers {
  /** Given, and not all sent yet. Not streams: their clients come back for the rest. */
  readonly leaving: ReadonlySet<ServerResponse>
  /** A handler works on the answer. */
  begun(response: ServerResponse): void
  /** The answer was handed to its connection, whose client may take it slowly. */
  given(response: ServerResponse, isStream: boolean): void
  /** What comes on a connection makes no sense: true when it ends with the answer that is under way there. */
  endsWithAnswer(socket: Duplex): boolean
}

/** A client that takes nothing of its answer for `stalledMs` loses its connection. */
export function createAnswers(stalledMs: number): Answers {
  const leaving = new Set<ServerResponse>()
  /** The newest one of each connection, until it is given; of a stream until the next one. */
  const begun = new WeakMap<Duplex, ServerResponse>()

  return {
    leaving,
    begun(response) {
      begun.set(response.req.socket, response)
    },
    given(response, isStream) {
      if (isStream) return
      begun.delete(response.req.socket)
      if (response.writableLength === 0) return
      leaving.add(response)
      response.setTimeout(stalledMs, () => response.destroy())
      response.once('close', () => leaving.delete(response))
    },
    endsWithAnswer(socket) {
      const response = begun.get(socket)
      // Where the request itself breaks off, the refusal is its answer.
      if (response === undefined || response.writableFinished || !response.req.complete)
        return false
      if (response.headersSent) response.destroy()
      else response.shouldKeepAlive = false
      return true
    },
  }
}
