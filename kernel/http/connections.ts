import type { Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { codeOf } from '../log.ts'
import { isEmptyBody } from './body.ts'

/** How long the clients of a listener may take, in milliseconds. */
export interface HttpTimes {
  /** From the connection, or the first byte of a further request, to the end of the head. */
  readonly head: number
  /** To the end of the body. */
  readonly request: number
  /** Between two requests. */
  readonly idle: number
  /** Without taking anything of a response that waits for it. */
  readonly stalled: number
  /** How often the first two are checked. */
  readonly check: number
}

/** The times of docs/operations.md, "Slow clients". */
export const HTTP_TIMES: HttpTimes = {
  head: 20_000,
  request: 120_000,
  idle: 65_000,
  stalled: 60_000,
  check: 2_000,
}

/** The requests that are in flight on the connections of a listener. */
export interface Connections {
  /**
   * Responses that are written and not yet sent whole. Not streams: their clients come back for the
   * rest.
   */
  readonly unsent: ReadonlySet<ServerResponse>
  /**
   * Starts the work on a request once few enough requests of its connection are in flight. Until
   * then nothing more is read from the connection. Where too many wait, the connection ends.
   */
  begin(response: ServerResponse, work: () => void): void
  /** The response was written; its client may take it slowly. */
  written(response: ServerResponse, isStream: boolean): void
  /** No further request of this connection is served. */
  stopReading(socket: Socket): void
  /** Whether an earlier request of this connection has no whole response yet. */
  isBusy(socket: Socket): boolean
  /**
   * Handles a parse error. Returns true if no 400 should be sent, because the connection is closing
   * or ends with the responses that are in flight.
   */
  endAfterReply(socket: Socket, error: Error): boolean
}

/** Node's parser: bytes come behind a request with `Connection: close`. */
const BEHIND_THE_LAST = 'HPE_CLOSED_CONNECTION'

/** Requests of one connection that are in flight. A client that pipelines more waits. */
const MAX_IN_FLIGHT = 32

/** Requests of all connections that wait for this: each takes 1.5 KiB. */
const MAX_WAITING = 32_768

/** The requests of one connection. */
interface Pipeline {
  /** The newest response, until it is written; of a stream until the next one. */
  newest: ServerResponse | undefined
  inFlight: number
  /** Requests that were read beyond the bound: they came in one piece with the ones before. */
  readonly waiting: (() => void)[]
}

/**
 * Tracks requests in flight. A client that takes nothing of its response for `stalledMs` is cut
 * off.
 */
export function createConnections(stalledMs: number): Connections {
  const unsent = new Set<ServerResponse>()
  const pipelines = new WeakMap<Socket, Pipeline>()
  const closing = new WeakSet<Socket>()
  let waitingInAll = 0

  function pipelineOf(socket: Socket): Pipeline {
    const known = pipelines.get(socket)
    if (known !== undefined) return known
    const pipeline: Pipeline = { newest: undefined, inFlight: 0, waiting: [] }
    pipelines.set(socket, pipeline)
    return pipeline
  }

  function hold(socket: Socket, { waiting }: Pipeline, work: () => void): void {
    if (waitingInAll === MAX_WAITING) return void socket.destroy()
    waitingInAll++
    waiting.push(work)
    if (waiting.length > 1) return
    socket.pause()
    // Node resumes the socket at the end of each request, and this one has not ended.
    socket.on('resume', pauseAgain)
    socket.on('close', drop)
    function pauseAgain(): void {
      if (waiting.length > 0) return void socket.pause()
      socket.off('resume', pauseAgain)
      socket.off('close', drop)
    }
    function drop(): void {
      waitingInAll -= waiting.length
      waiting.length = 0
    }
  }

  function finished(socket: Socket, pipeline: Pipeline): void {
    pipeline.inFlight--
    if (socket.destroyed || closing.has(socket)) return
    const next = pipeline.waiting.shift()
    if (next === undefined) return
    waitingInAll--
    pipeline.inFlight++
    if (pipeline.waiting.length === 0) socket.resume()
    next()
  }

  return {
    unsent,
    begin(response, work) {
      const { socket } = response.req
      if (socket.destroyed || closing.has(socket)) return
      const pipeline = pipelineOf(socket)
      pipeline.newest = response
      if (pipeline.inFlight >= MAX_IN_FLIGHT) return hold(socket, pipeline, work)
      pipeline.inFlight++
      work()
    },
    written(response, isStream) {
      const { req } = response
      const { socket } = req
      const pipeline = pipelineOf(socket)
      if (isStream) return void response.once('close', () => finished(socket, pipeline))
      if (pipeline.newest === response) pipeline.newest = undefined
      const isRead = req.complete || isEmptyBody(req)
      if (isRead && response.writableLength === 0) return finished(socket, pipeline)
      unsent.add(response)
      response.setTimeout(stalledMs, () => response.destroy())
      response.once('close', () => {
        unsent.delete(response)
        finished(socket, pipeline)
      })
    },
    stopReading: (socket) => void closing.add(socket),
    isBusy(socket) {
      if (pipelines.get(socket)?.newest?.writableFinished === false) return true
      for (const response of unsent) if (response.req.socket === socket) return true
      return false
    },
    endAfterReply(socket, error) {
      const response = pipelines.get(socket)?.newest
      // Where the request itself breaks off, the refusal is its response.
      if (response === undefined || response.writableFinished || !response.req.complete) {
        const isOver = closing.has(socket) || codeOf(error) === BEHIND_THE_LAST
        if (isOver) socket.destroySoon()
        return isOver
      }
      if (response.headersSent) response.destroy()
      else response.shouldKeepAlive = false
      return true
    },
  }
}

/** Aborted when a response has been sent whole, or nobody waits for it any more. */
export function endOf(response: ServerResponse): AbortSignal {
  if (response.closed) return AbortSignal.abort()
  const end = new AbortController()
  response.once('close', () => end.abort())
  return end.signal
}

/** How long a connection without a request stays open at the end: a request may be on its way. */
const LAST_REQUESTS_MS = 500
const CHECK_MS = 50

export interface ServerToClose {
  readonly server: Server
  /** Responses that are written and not yet sent whole. */
  readonly unsent: ReadonlySet<ServerResponse>
  /** Connections that became WebSockets. */
  readonly upgraded: ReadonlySet<Duplex>
}

/**
 * Stops accepting, answers what was accepted, and cuts what is left after `graceMs`. Node's own
 * `http.Server.close` resets connections whose request is on its way, and cuts off slow clients. A
 * socket that systemd passed stays open: it keeps new connections for the next process.
 */
export async function closeServer(
  { server, unsent, upgraded }: ServerToClose,
  graceMs: number,
): Promise<void> {
  const closed = new Promise<void>((resolve) =>
    NetServer.prototype.close.call(server, () => resolve()),
  )
  const cut = setTimeout(() => {
    server.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }, graceMs)
  // After the event loop has read what arrived: a connection with a request is not idle.
  const closeIdle = (): unknown =>
    setImmediate(() => unsent.size === 0 && server.closeIdleConnections())
  let checking: NodeJS.Timeout | undefined
  const wait = setTimeout(() => (checking = setInterval(closeIdle, CHECK_MS)), LAST_REQUESTS_MS)
  await closed
  for (const timer of [cut, wait, checking]) clearTimeout(timer)
}
