import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { readStart } from '../../../kernel/net/outbound.ts'

/** A request of a check. */
interface CheckRequest extends RequestOptions {
  signal: AbortSignal
  body?: string | undefined
  /** How much of the answer's body is read. */
  answerBytes: (status: number) => number
}

/** What a server answered. */
export interface CheckAnswer {
  status: number
  headers: IncomingHttpHeaders
  /** Its beginning. */
  body: Buffer
  /** When the certificate ends; undefined without TLS. */
  valid_to: string | undefined
}

/**
 * Sends a request on a connection of its own, because a check also looks whether the server still
 * takes connections. Redirects are not followed. Rejects without an answer.
 */
export function exchange({ body, answerBytes, ...options }: CheckRequest): Promise<CheckAnswer> {
  const isTls = options.protocol === 'https:'
  const send = isTls ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    let answered = false
    const outgoing = send({ ...options, agent: false }, (response) => {
      answered = true
      const { statusCode: status = 0, headers } = response
      const certificate = isTls && (response.socket as TLSSocket).getPeerCertificate()
      const valid_to = certificate ? certificate.valid_to : undefined
      readStart(response, answerBytes(status), (start) =>
        resolve({ status, headers, body: start, valid_to }),
      )
    })
    // Once there is an answer it counts, whatever else happens to the connection.
    outgoing.on('error', (error) => {
      if (!answered) reject(error)
    })
    // A switch of protocols (101) that nobody asked for closes the connection without an error.
    outgoing.on('close', () => {
      if (!answered) reject(new Error('the connection was closed without an answer'))
    })
    // Node sends no length with the body of a DELETE: it would be read as another request.
    if (body !== undefined) outgoing.setHeader('content-length', Buffer.byteLength(body))
    outgoing.end(body)
  })
}
