import type { IncomingMessage, ServerResponse } from 'node:http'
import { isEmptyBody } from './body.ts'
import type { PiecesBody, Reply, StreamBody } from './reply.ts'
import { createSink } from './sink.ts'

/** What is left of an unread body after its refusal: read on so that the client sees the answer. */
const DRAIN_BYTES = 64 * 1024 * 1024
const DRAIN_MS = 3_000

/**
 * Writes a reply to its socket; with `closing` the connection ends after it. Gives the length of its body
 * in bytes, undefined for a stream.
 */
export function writeReply(
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
    // A 426 has an option of its own there, and what a reply sets is all that Node says and does.
    const own = headers['connection']
    headers['connection'] = own === undefined ? 'close' : `${String(own)}, close`
  }

  if (typeof body === 'function') {
    response.writeHead(status, headers as Record<string, string>)
    if (request.method === 'HEAD') {
      response.end()
      return 0
    }
    response.flushHeaders()
    body(createSink(response))
    return undefined
  }
  const pieces = piecesOf(body)
  let length = 0
  for (const piece of pieces) length += Buffer.byteLength(piece)
  if (body !== null || (status !== 204 && status !== 304)) headers['content-length'] = length
  response.writeHead(status, headers as Record<string, string>)
  const sent = request.method === 'HEAD' ? NOTHING : pieces
  if (unread) {
    if (sent.length === 0) response.flushHeaders()
    for (const piece of sent) response.write(piece)
    drain(request, () => response.end())
  } else {
    if (sent.length > 1) {
      // They go out as one, too: `end` uncorks.
      response.cork()
      for (const piece of sent.slice(0, -1)) response.write(piece)
    }
    response.end(sent.at(-1))
  }
  return sent.length === 0 ? 0 : length
}

const NOTHING: PiecesBody['pieces'] = []

function piecesOf(body: Exclude<Reply['body'], StreamBody>): PiecesBody['pieces'] {
  if (body === null) return NOTHING
  return typeof body === 'object' && 'pieces' in body ? body.pieces : [body]
}

/** Reads a refused body to its end, within bounds: closing at once would reset the client's connection. */
function drain(request: IncomingMessage, done: () => void): void {
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
