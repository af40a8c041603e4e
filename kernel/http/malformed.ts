import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { codeOf } from '../log.ts'
import { badRequest, Fault } from '../fault.ts'
import { http } from './node-http.ts'
import type { Reply } from './reply.ts'

/** A name, an IPv4 address or a bracketed IPv6 one, and a port (RFC 9110 section 7.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

const NOT_HTTP = badRequest('The request is not valid HTTP/1.1.')

/**
 * The fault of a request that Node's parser refused, by the parser's error code. Undefined when
 * the connection itself broke: then nobody waits for an answer.
 */
export function faultOfParseError(error: Error) {
  const code = codeOf(error) ?? ''
  if (!/^(HPE|ERR_HTTP)_/.test(code)) return undefined
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Fault(431, 'HEADERS_TOO_LARGE', 'The headers exceed 16 KiB or 1,000 fields.')
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new Fault(408, 'REQUEST_TIMEOUT', 'The request did not arrive in time.')
  }
  return NOT_HTTP
}

/**
 * Why a request that Node's parser accepts is refused: a proxy before us may have read it
 * differently (RFC 9112 sections 3.2 and 6.1).
 */
export function ambiguity(request: IncomingMessage) {
  const { headers, rawHeaders, httpVersion } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return NOT_HTTP
  }
  let hosts = 0
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  const { host = '' } = headers
  if (hosts > 1 || (hosts === 0 && httpVersion !== '1.0') || !HOST.test(host)) {
    return badRequest('The request must have one Host header, with a name and a port only.')
  }
  const authority = authorityOf(request)
  if (authority !== undefined && authority.toLowerCase() !== host.toLowerCase()) {
    return badRequest('The Host header and the URL of the request line differ.')
  }
  const coding = headers['transfer-encoding']
  if (coding === undefined) return undefined
  if (httpVersion === '1.0') return badRequest('A request of HTTP/1.0 has no transfer coding.')
  return coding.toLowerCase() === 'chunked'
    ? undefined
    : badRequest('The only transfer coding taken here is "chunked".')
}

/**
 * Answers on the raw socket, because there is no response object for a request that never became
 * one; a socket on which another answer is leaving ends with that.
 */
export function refuseMalformed(socket: Socket, { status, headers, body }: Reply, id: string) {
  if (!socket.writable || typeof body !== 'string') return void socket.destroy()
  if (socket.writableLength > 0) return socket.destroySoon()
  const lines = [`HTTP/1.1 ${status} ${http.STATUS_CODES[status] ?? ''}`]
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${String(value)}`)
  lines.push('x-content-type-options: nosniff', `x-request-id: ${id}`, 'connection: close')
  lines.push(`content-length: ${Buffer.byteLength(body)}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`)
}

/** The path and the query of a request; the query without its question mark. */
export function splitTarget({ url }: IncomingMessage): {
  path: string
  search: string
} {
  const target = originForm(url ?? '/')
  const mark = target.indexOf('?')
  if (mark < 0) return { path: target, search: '' }
  return { path: target.slice(0, mark), search: target.slice(mark + 1) }
}

/** The host and port in `POST http://host/path`; undefined where the target is a path. */
function authorityOf({ url = '/' }: IncomingMessage) {
  if (url.startsWith('/')) return undefined
  return /^https?:\/\/([^/?#]*)/i.exec(url)?.[1]
}

/** A server must also take `POST http://host/path` (RFC 9112 section 3.2.2). */
function originForm(target: string) {
  if (target.startsWith('/')) return target
  return target.replace(/^https?:\/\/[^/?#]*(?=[/?]|$)/i, '') || '/'
}
