import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Fault } from './fault.ts'
import type { Reply } from './reply.ts'

/** The fault of a request that Node's parser gave up on, by the parser's error code. */
export function faultOfBrokenRequest(error: Error): Fault {
  const code = 'code' in error ? error.code : undefined
  if (code === 'HPE_HEADER_OVERFLOW') {
    return { status: 431, code: 'HEADERS_TOO_LARGE', detail: 'The request headers exceed 16 KiB.' }
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return { status: 408, code: 'REQUEST_TIMEOUT', detail: 'The request did not arrive in time.' }
  }
  return { status: 400, code: 'BAD_REQUEST', detail: 'The request is not valid HTTP/1.1.' }
}

/**
 * Answers on the raw socket, because there is no response object for a request that never became
 * one; a socket on which another answer is under way is only closed.
 */
export function refuseBrokenRequest(socket: Socket, reply: Reply, requestId: string): void {
  if (
    !socket.writable ||
    socket.destroyed ||
    socket.writableLength > 0 ||
    typeof reply.body !== 'string'
  ) {
    socket.destroy()
    return
  }
  const lines = [`HTTP/1.1 ${reply.status} ${STATUS_CODES[reply.status] ?? ''}`]
  for (const [name, value] of Object.entries(reply.headers)) lines.push(`${name}: ${String(value)}`)
  lines.push('x-content-type-options: nosniff', `x-request-id: ${requestId}`, 'connection: close')
  lines.push(`content-length: ${Buffer.byteLength(reply.body)}`)
  socket.end(`${lines.join('\r\n')}\r\n\r\n${reply.body}`)
}
