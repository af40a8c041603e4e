import { STATUS_CODES, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { codeOf } from '../log.ts'
import type { FaultValue } from '../fault.ts'
import type { Reply } from './reply.ts'
import { authorityOf } from './request-target.ts'

/** A name, an IPv4 address or a bracketed IPv6 one, and a port (RFC 9110 section 7.2). */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

const NO_HTTP = badRequest('The request is not valid HTTP/1.1.')

/**
 * The fault of a request that Node's parser gave up on, by the parser's error code; undefined when it is the
 * connection that broke, which is no request and leaves nobody to answer.
 */
export function faultOfBrokenRequest(error: Error): FaultValue | undefined {
  const code = codeOf(error) ?? ''
  if (!/^(HPE|ERR_HTTP)_/.test(code)) return undefined
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { status: 431, code: 'HEADERS_TOO_LARGE', detail: 'The request headers exceed 16 KiB.' }
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' }
  }
  return NO_HTTP
}

/**
 * Why a request that Node's parser takes is refused all the same: a proxy before us may have read it
 * otherwise (RFC 9112 sections 3.2 and 6.1).
 */
export function ambiguity(request: IncomingMessage): FaultValue | undefined {
  const { headers, rawHeaders, httpVersion } = request
  if (httpVersion !== '1.1' && httpVersion !== '1.0') {
    return NO_HTTP
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

function badRequest(detail: string): FaultValue {
  return { status: 400, code: 'BAD_REQUEST', detail }
}

/**
 * Answers on the raw socket, because there is no response object for a request that never became
 * one; a socket on which another answer is leaving ends with that.
 */
export function refuseBrokenRequest(socket: Socket, reply: Reply, requestId: string): void {
  if (!socket.writable || typeof reply.body !== 'string') return void socket.destroy()
  if (socket.writableLength > 0) return socket.destroySoon()
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? ''}`]
  for (const [name, value] of Object.entries(reply.headers)) lines.push(`${name}: ${String(value)}`)
  lines.push('x-content-type-options: nosniff', `x-request-id: ${requestId}`, 'connection: close')
  lines.push(`content-length: ${Buffer.byteLength(reply.body)}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${reply.body}`)
}
