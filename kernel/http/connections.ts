import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Server as NetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { codeOf } from '../log.ts'
import { isEmptyBody } from './body.ts'
import type { ConnectionLimit } from './connection-limit.ts'
import type { RequestLevel, WaitingRequests } from './waiting.ts'

/** How long the clients of a listener may take, in ms: docs/failures.md, "Slow clients". */
export const HTTP_TIMES = {
  /** From the connection, or the first byte of a further request, to the end of the head. */
  head: 20_000,
  /** To the end of the body. */
  request: 120_000,
  /** Between two requests. */
  idle: 65_000,
  /** Without taking anything of a response that waits for it. */
  stalled: 60_000,
  /** How often the first two are checked. */
  check: 2_000,
}

/** Node's parser: bytes come behind a request with `Connection: close`. */
const BEHIND_THE_LAST = 'HPE_CLOSED_CONNECTION'

/** Requests of one connection that are in flight. A client that pipelines more waits. */
const MAX_IN_FLIGHT = 32

/** Starts the work on a request; it calls `begun` when the handler begins. */
type Work = (begun: () => void) => void

interface Waiting {
  work: Work
  begun: () => void
}

/** The requests of one connection. */
interface Pipeline {
  /** The newest response, until it is written; of a stream until the next one. */
  newest: ServerResponse | undefined
  inFlight: number
  /** Requests that were read, and whose handlers have not begun. */
  unbegun: number
  /** Of these, the ones beyond those in flight: they came in one piece with the ones before. */
  waiting: Waiting[]
  /** No further request is served. */
  closing: boolean
}

const newPipeline = (): Pipeline => ({
  newest: undefined,
  inFlight: 0,
  unbegun: 0,
  waiting: [],
  closing: false,
})

interface ConnectionsOptions {
  limit: ConnectionLimit
  waiting: WaitingRequests
  /** Asked only for a request that its client sends without waiting for an answer. */
  levelOf: (request: IncomingMessage) => RequestLevel
  /** How long a client may read nothing of its response before it is cut off. */
  stalledMs: number
}

/** The requests that are in flight on the connections of a listener. */
export class Connections {
  /**
   * Responses that are written and not yet sent whole. Not streams: their clients come back for
   * the rest.
   */
  unsent = new Set<ServerResponse>()
  /** Connections that became WebSockets: Node's server no longer knows them. */
  upgraded = new Set<Duplex>()
  #pipelines = new WeakMap<Socket, Pipeline>()
  #options: ConnectionsOptions

  constructor(options: ConnectionsOptions) {
    this.#options = options
  }

  /**
   * Starts the work on a request once few enough requests of its connection are in flight. Until
   * then nothing more is read from the connection. A client that sends one request at a time never
   * meets the bound of those that wait; where others exceed it, their connection ends.
   */
  begin(response: ServerResponse, work: Work) {
    const { req } = response
    const { socket } = req
    const { limit, waiting, levelOf } = this.#options
    const pipeline = this.#pipelineOf(socket)
    if (socket.destroyed || pipeline.closing) return
    limit.busy(socket)
    pipeline.newest = response
    const release = pipeline.unbegun === 0 ? nothing : waiting.take(levelOf(req), req)
    if (release === undefined) return void socket.destroy()
    pipeline.unbegun++
    function begun() {
      pipeline.unbegun--
      release?.()
    }
    if (pipeline.inFlight >= MAX_IN_FLIGHT) return hold(socket, pipeline, { work, begun })
    pipeline.inFlight++
    work(begun)
  }

  /** The response was written; its client may take it slowly. */
  written(response: ServerResponse, isStream: boolean) {
    const { req } = response
    const { socket } = req
    const pipeline = this.#pipelineOf(socket)
    if (isStream) return void response.once('close', () => this.#finished(socket, pipeline))
    if (pipeline.newest === response) pipeline.newest = undefined
    const isRead = req.complete || isEmptyBody(req)
    if (isRead && response.writableLength === 0) return this.#finished(socket, pipeline)
    this.unsent.add(response)
    response.setTimeout(this.#options.stalledMs, () => response.destroy())
    response.once('close', () => {
      this.unsent.delete(response)
      this.#finished(socket, pipeline)
    })
  }

  /** No further request of this connection is served. */
  stopReading(socket: Socket) {
    this.#pipelineOf(socket).closing = true
  }

  /** Whether an earlier request of this connection has no whole response yet. */
  isBusy(socket: Socket) {
    if (this.#pipelineOf(socket).newest?.writableFinished === false) return true
    for (const response of this.unsent) if (response.req.socket === socket) return true
    return false
  }

  /**
   * Handles a parse error. Returns true if no 400 should be sent, because the connection is
   * closing or ends with the responses that are in flight.
   */
  endAfterReply(socket: Socket, error: Error) {
    const { newest, closing } = this.#pipelineOf(socket)
    // Where the request itself breaks off, the refusal is its response.
    if (newest === undefined || newest.writableFinished || !newest.req.complete) {
      const isOver = closing || codeOf(error) === BEHIND_THE_LAST
      if (isOver) socket.destroySoon()
      return isOver
    }
    if (newest.headersSent) newest.destroy()
    else newest.shouldKeepAlive = false
    return true
  }

  #pipelineOf(socket: Socket) {
    return this.#pipelines.getOrInsertComputed(socket, newPipeline)
  }

  #finished(socket: Socket, pipeline: Pipeline) {
    pipeline.inFlight--
    if (pipeline.inFlight === 0) this.#options.limit.rests(socket)
    if (socket.destroyed || pipeline.closing) return
    const next = pipeline.waiting.shift()
    if (next === undefined) return
    pipeline.inFlight++
    if (pipeline.waiting.length === 0) socket.resume()
    next.work(next.begun)
  }
}

function nothing() {}

/** Keeps a request for later; until then nothing more is read from its connection. */
function hold(socket: Socket, { waiting }: Pipeline, request: Waiting) {
  waiting.push(request)
  if (waiting.length > 1) return
  function drop() {
    for (const { begun } of waiting) begun()
    waiting.length = 0
  }
  function pauseAgain() {
    if (waiting.length > 0) return void socket.pause()
    socket.off('resume', pauseAgain)
    socket.off('close', drop)
  }
  socket.pause()
  // Node resumes the socket at the end of each request, and this one has not ended.
  socket.on('resume', pauseAgain)
  socket.on('close', drop)
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

/**
 * Stops accepting, answers what was accepted, and cuts what is left after `graceMs`. Node's own
 * `http.Server.close` resets connections whose request is on its way, and cuts off slow clients. A
 * socket that systemd passed stays open: it keeps new connections for the next process.
 */
export async function closeServer(server: Server, connections: Connections, graceMs: number) {
  const { unsent, upgraded } = connections
  const closed = new Promise<void>((resolve) =>
    NetServer.prototype.close.call(server, () => resolve()),
  )
  const cut = setTimeout(() => {
    server.closeAllConnections()
    for (const socket of upgraded) socket.destroy()
  }, graceMs)
  // After the event loop has read what arrived: a connection with a request is not idle.
  const closeIdle = () => setImmediate(() => unsent.size === 0 && server.closeIdleConnections())
  let checking: NodeJS.Timeout | undefined
  const wait = setTimeout(() => (checking = setInterval(closeIdle, CHECK_MS)), LAST_REQUESTS_MS)
  await closed
  for (const timer of [cut, wait, checking]) clearTimeout(timer)
}
