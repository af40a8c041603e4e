import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { codeOf } from '../log.ts'

/** Answers that are under way on the connections of a listener. */
export interface Answers {
  /** Given, and not over yet. Not streams: their clients come back for the rest. */
  readonly leaving: ReadonlySet<ServerResponse>
  /**
   * Has the answer to a request worked on, once few enough requests of its connection are unanswered.
   * Until then nothing more is read from the connection. Where too many wait so, the connection ends.
   */
  begin(response: ServerResponse, work: () => void): void
  /** The answer was handed to its connection, whose client may take it slowly. */
  given(response: ServerResponse, isStream: boolean): void
  /** No further request of this connection is heard. */
  last(socket: Socket): void
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

/** Unanswered requests of one connection that are worked on. A client that pipelines more waits. */
const MOST_UNANSWERED = 32

/** Requests of all connections that wait for this: each takes 1.5 KiB. */
const MOST_HELD = 32_768

/** The requests of one connection. */
interface Pipeline {
  /** The newest answer, until it is given; of a stream until the next one. */
  newest: ServerResponse | undefined
  /** Answers that are worked on, or have not left whole. */
  unanswered: number
  /** Requests that were read beyond the bound: those that came in one piece with the ones before. */
  readonly held: (() => void)[]
}

/** A client that takes nothing of its answer for `stalledMs` loses its connection. */
export function createAnswers(stalledMs: number): Answers {
  const leaving = new Set<ServerResponse>()
  const pipelines = new WeakMap<Socket, Pipeline>()
  const over = new WeakSet<Socket>()
  let heldByAll = 0

  function pipelineOf(socket: Socket): Pipeline {
    const known = pipelines.get(socket)
    if (known !== undefined) return known
    const pipeline: Pipeline = { newest: undefined, unanswered: 0, held: [] }
    pipelines.set(socket, pipeline)
    return pipeline
  }

  function hold(socket: Socket, { held }: Pipeline, work: () => void): void {
    if (heldByAll === MOST_HELD) return void socket.destroy()
    heldByAll++
    held.push(work)
    if (held.length > 1) return
    socket.pause()
    // Node resumes at the end of each request, and this one has not ended.
    socket.on('resume', pauseAgain)
    socket.on('close', drop)
    function pauseAgain(): void {
      if (held.length > 0) return void socket.pause()
      socket.off('resume', pauseAgain)
      socket.off('close', drop)
    }
    function drop(): void {
      heldByAll -= held.length
      held.length = 0
    }
  }

  function left(socket: Socket, pipeline: Pipeline): void {
    pipeline.unanswered--
    if (socket.destroyed || over.has(socket)) return
    const next = pipeline.held.shift()
    if (next === undefined) return
    heldByAll--
    pipeline.unanswered++
    if (pipeline.held.length === 0) socket.resume()
    next()
  }

  return {
    leaving,
    begin(response, work) {
      const { socket } = response.req
      if (socket.destroyed || over.has(socket)) return
      const pipeline = pipelineOf(socket)
      pipeline.newest = response
      if (pipeline.unanswered >= MOST_UNANSWERED) return hold(socket, pipeline, work)
      pipeline.unanswered++
      work()
    },
    given(response, isStream) {
      const { socket } = response.req
      const pipeline = pipelineOf(socket)
      if (isStream) return void response.once('close', () => left(socket, pipeline))
      if (pipeline.newest === response) pipeline.newest = undefined
      // Amid a reading Node gives its connection up only afterwards, though all of it has left.
      if (response.req.complete && response.writableLength === 0) return left(socket, pipeline)
      leaving.add(response)
      response.setTimeout(stalledMs, () => response.destroy())
      response.once('close', () => {
        leaving.delete(response)
        left(socket, pipeline)
      })
    },
    last: (socket) => void over.add(socket),
    isBusy(socket) {
      if (pipelines.get(socket)?.newest?.writableFinished === false) return true
      for (const response of leaving) if (response.req.socket === socket) return true
      return false
    },
    endsWithAnswer(socket, error) {
      const response = pipelines.get(socket)?.newest
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
