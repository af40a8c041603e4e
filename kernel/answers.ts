import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { codeOf } from './cause.ts'

/** Answers that are under way on the connections of a listener. */
export interface Answers {
  /** Given, and not over yet. Not streams: their clients come back for the rest. */
  readonly leaving: ReadonlySet<ServerResponse>
  /** A handler works on the answer, or it waits for the end of its turn. */
  begun(response: ServerResponse): void
  /** The answer was handed to its connection, whose client may take it slowly. */
  given(response: ServerResponse, isStream: boolean): void
  /** No further request of this connection is heard. */
  last(socket: Socket): void
  areOver(socket: Socket): boolean
  /** An earlier request of this connection has no whole answer yet. */
  isBusy(socket: Socket): boolean
  /**
   * What comes on a connection is no request: true when nobody waits for an answer to it, and the
   * connection ends with the answers that are under way.
   */
  endsWithAnswer(socket: Socket, error: Error): boolean
}

/** By Node's parser: something comes behind a request with `Connection: close`. */
const BEHIND_THE_LAST = 'HPE_CLOSED_CONNECTION'

/** A client that takes nothing of its answer for `stalledMs` loses its connection. */
export function createAnswers(stalledMs: number): Answers {
  const leaving = new Set<ServerResponse>()
  /** The newest one of each connection, until it is given; of a stream until the next one. */
  const begun = new WeakMap<Socket, ServerResponse>()
  const over = new WeakSet<Socket>()

  return {
    leaving,
    begun(response) {
      begun.set(response.req.socket, response)
    },
    given(response, isStream) {
      if (isStream) return
      begun.delete(response.req.socket)
      // Amid a reading Node gives its connection up only afterwards, though all of it has left.
      if (response.req.complete && response.writableLength === 0) return
      leaving.add(response)
      response.setTimeout(stalledMs, () => response.destroy())
      response.once('close', () => leaving.delete(response))
    },
    last: (socket) => void over.add(socket),
    areOver: (socket) => over.has(socket),
    isBusy(socket) {
      if (begun.get(socket)?.writableFinished === false) return true
      for (const response of leaving) if (response.req.socket === socket) return true
      return false
    },
    endsWithAnswer(socket, error) {
      const response = begun.get(socket)
      // Where the request itself breaks off, the refusal is its answer.
      if (response === undefined || response.writableFinished || !response.req.complete) {
        const isOver = over.has(socket) || codeOf(error) === BEHIND_THE_LAST
        if (isOver) socket.destroySoon()
        return isOver
      }
      if (response.headersSent) response.destroy()
      else response.shouldKeepAlive = false
      return true
    },
  }
}

/** Aborted when an answer has left whole, or nobody waits for it any more. */
export function endOf(response: ServerResponse): AbortSignal {
  if (response.closed) return AbortSignal.abort()
  const end = new AbortController()
  response.once('close', () => end.abort())
  return end.signal
}
