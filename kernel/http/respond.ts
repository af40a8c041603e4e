import type { IncomingMessage, ServerResponse } from 'node:http'
import { Fault, unavailable, Unavailable } from '../fault.ts'
import { messageOf, type Log } from '../log.ts'
import type { Clock } from '../time.ts'
import { isEmptyBody } from './body.ts'
import type { Connections } from './connections.ts'
import type { Context } from './context.ts'
import type { FaultReply, PiecesBody, Reply, Sink, StreamBody } from './reply.ts'
import type { LogLimit, RequestLog } from './request-log.ts'
import type { Answer } from './router.ts'
import { type Upgrade, acceptChannel } from './websocket.ts'

/** A request, and what its response needs. */
export interface Exchange {
  request: IncomingMessage
  response: ServerResponse
  upgrade: Upgrade | undefined
  context: Context
  /** Nothing further is read from the connection. */
  isLast: boolean
  /** When it came, of `performance.now()`. */
  started: number
}

/** What the responses of a listener are written with. */
export interface Responder {
  service: string
  faultReply: FaultReply
  connections: Connections
  log: Log
  logLimit: LogLimit
  requestLog: RequestLog
  clock: Clock
  /** From now on connections end with their response. */
  stopping: boolean
}

/**
 * Writes a response; gives what writes its log line. A reply that can't be written becomes an
 * error while nothing of it has been sent; else the connection breaks off, so that its client does
 * not wait for ever.
 */
export function respond(responder: Responder, exchange: Exchange, reply: Answer) {
  const { response, context, started } = exchange
  try {
    return write(responder, exchange, reply)
  } catch (error) {
    const instead = errorReply(responder, exchange, error)
    if (!response.headersSent) return write(responder, exchange, instead)
    response.destroy()
    return () => responder.requestLog.answered(context, started, instead.status, undefined)
  }
}

function write(responder: Responder, exchange: Exchange, reply: Answer) {
  const { connections, requestLog, clock, stopping } = responder
  const { request, response, upgrade, context, isLast, started } = exchange
  if (response.destroyed) return () => requestLog.answered(context, started, 499, 0)
  let bytes: number | undefined
  if (!('open' in reply)) {
    bytes = writeReply(request, response, reply, context.requestId, stopping || isLast)
    connections.written(response, typeof reply.body === 'function')
  } else if (upgrade !== undefined) {
    response.detachSocket(request.socket)
    acceptChannel(request, upgrade, reply, context.requestId, clock)
  }
  return () => requestLog.answered(context, started, reply.status, bytes)
}

/** The reply for what a handler threw. Where even that can't be made, an empty 500. */
export function errorReply(responder: Responder, { context }: Exchange, error: unknown): Reply {
  const { service, log, faultReply } = responder
  try {
    return faultReply(faultOf(responder, context, error), context)
  } catch (second) {
    log.error('answer failed', { service, error: messageOf(second) })
    return { status: 500, headers: {}, body: null }
  }
}

/** The fault for what a handler threw. A bug is logged, and its client learns nothing of it. */
function faultOf(responder: Responder, { requestId, route }: Context, error: unknown) {
  const { service, log, logLimit } = responder
  if (error instanceof Fault) return error
  const fields = { request_id: requestId, service, route, error: messageOf(error) }
  if (error instanceof Unavailable) {
    if (logLimit('unavailable', route, 503)) log.warn('unavailable', fields)
    return unavailable(
      'The database is out of reach; what was sent may not be stored. Try again shortly.',
    )
  }
  const stack = error instanceof Error ? error.stack : undefined
  log.error('handler failed', { ...fields, stack })
  return new Fault(500, 'INTERNAL_ERROR', 'Internal server error.')
}

/** Bounds for the rest of a refused body, which is read so that the client sees the response. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 3_000

/**
 * Writes a reply; with `closing` the connection ends after it. Gives the length of its body in
 * bytes, undefined for a stream.
 */
function writeReply(
  request: IncomingMessage,
  response: ServerResponse,
  reply: Reply,
  requestId: string,
  closing: boolean,
): number | undefined {
  const { status, body } = reply
  const headers: Record<string, string | number | readonly string[]> = { ...reply.headers }
  headers['x-content-type-options'] = 'nosniff'
  headers['x-request-id'] = requestId
  const unread = !request.complete && !isEmptyBody(request)
  if (closing || unread || !response.shouldKeepAlive) {
    // A reply of 426 has a `connection` of its own, and Node adds nothing to it.
    const own = headers['connection']
    headers['connection'] = own === undefined ? 'close' : `${String(own)}, close`
  }
  if (typeof body === 'function') return startStream(request, response, body, status, headers)
  const pieces = piecesOf(body)
  let length = 0
  for (const piece of pieces) length += Buffer.byteLength(piece)
  if (body !== null || (status !== 204 && status !== 304)) headers['content-length'] = length
  response.writeHead(status, headers as Record<string, string>)
  const sent = request.method === 'HEAD' ? NOTHING : pieces
  if (unread) {
    if (sent.length === 0) response.flushHeaders()
    for (const piece of sent) response.write(piece)
    drainRequest(request, () => response.end())
  } else {
    if (sent.length > 1) {
      // Corked, the pieces leave in one write; `end` uncorks.
      response.cork()
      for (const piece of sent.slice(0, -1)) response.write(piece)
    }
    response.end(sent.at(-1))
  }
  return sent.length === 0 ? 0 : length
}

const NOTHING: PiecesBody['pieces'] = []

function startStream(
  request: IncomingMessage,
  response: ServerResponse,
  open: StreamBody,
  status: number,
  headers: Readonly<Record<string, string | number | readonly string[]>>,
): number | undefined {
  response.writeHead(status, headers as Record<string, string>)
  if (request.method === 'HEAD') {
    response.end()
    return 0
  }
  response.flushHeaders()
  open(createSink(response))
  return undefined
}

function piecesOf(body: Exclude<Reply['body'], StreamBody>): PiecesBody['pieces'] {
  if (body === null) return NOTHING
  return typeof body === 'object' && 'pieces' in body ? body.pieces : [body]
}

/**
 * Reads a refused body to its end, within bounds: closing at once would reset the client's
 * connection.
 */
function drainRequest(request: IncomingMessage, done: () => void): void {
  let bytes = 0
  const timer = setTimeout(() => request.destroy(), DRAIN_MS)
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > DRAIN_BYTES) request.destroy()
  })
  request.once('end', done)
  request.once('close', () => clearTimeout(timer))
  request.resume()
}

/** The socket side of a streaming reply, whose head has been sent. */
function createSink(response: ServerResponse): Sink {
  return {
    write(chunk) {
      if (!response.writableEnded && !response.destroyed) response.write(chunk)
    },
    get unsent() {
      return response.writableLength
    },
    get closed() {
      return response.writableEnded || response.destroyed
    },
    drained: () => drained(response),
    end(chunk) {
      if (!response.writableEnded) response.end(chunk)
    },
    destroy() {
      response.destroy()
    },
    onClose(callback) {
      response.once('close', callback)
    },
  }
}

/** Resolves when a response takes more again, or its client is gone. */
export function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    if (!response.writableNeedDrain || response.destroyed) return resolve()
    // Only one of the two events may come: both listeners are removed.
    function settle(): void {
      response.off('drain', settle)
      response.off('close', settle)
      resolve()
    }
    response.on('drain', settle)
    response.on('close', settle)
  })
}
