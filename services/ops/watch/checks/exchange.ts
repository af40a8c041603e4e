import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import type { Readable, Transform } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { createBrotliDecompress, createUnzip, createZstdDecompress } from 'node:zlib'
import { http } from '../../../../kernel/http/node-http.ts'
import { codeOf } from '../../../../kernel/log.ts'
import { escapeControls } from '../../../../kernel/text.ts'
import { clientWanted, firstEnd, type CertificateEnd } from './certificates.ts'

/** A request of a check. */
interface CheckRequest extends RequestOptions {
  signal: AbortSignal
  body?: string | undefined
  /** How much of the answer's body is read, once it is decoded. */
  answerBytes: (status: number) => number
}

/** What a server answered. */
export interface CheckAnswer {
  status: number
  headers: IncomingHttpHeaders
  /** Its beginning, decoded. */
  body: Buffer
  /** There was more of it. */
  isCut: boolean
  /** What ends first of the server's certificates; undefined without TLS. */
  end: CertificateEnd | undefined
}

/** Bytes of the headers of an answer. */
const MAX_HEADERS = 64 * 1024

/**
 * Sends a request on a connection of its own, because a check also looks whether the server still
 * takes connections. Redirects are not followed. Rejects without an answer.
 */
export function exchange({ body, answerBytes, ...options }: CheckRequest): Promise<CheckAnswer> {
  const send = options.protocol === 'https:' ? httpsRequest : http.request
  return new Promise((resolve, reject) => {
    let answered = false
    const request = { ...options, agent: false, maxHeaderSize: MAX_HEADERS }
    const outgoing = send(request, (response) => {
      answered = true
      const { statusCode: status = 0, headers } = response
      const end = endOf(response.socket)
      readDecoded(response, answerBytes(status), options.signal).then(
        (read) => resolve({ status, headers, end, ...read }),
        reject,
      )
    })
    // Once there is an answer it counts, whatever else happens to the connection.
    outgoing.on('error', (error) => {
      if (!answered) reject(plainError(error, endOf(outgoing.socket)))
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

function endOf(socket: unknown): CertificateEnd | undefined {
  return socket instanceof TLSSocket ? firstEnd(socket) : undefined
}

/** A map: the name comes from a stranger, and an object knows `constructor`. */
const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createUnzip],
  ['x-gzip', createUnzip],
  ['deflate', createUnzip],
  ['br', createBrotliDecompress],
  ['zstd', createZstdDecompress],
])
/** Characters of the name of a coding in a message. */
const MAX_CODING = 40

/**
 * Reads the beginning of a body, decoded, and drops the connection: it may be endless. One that breaks off counts as a
 * short one. Rejects where it can not be decoded.
 */
function readDecoded(
  response: IncomingMessage,
  limit: number,
  signal: AbortSignal,
): Promise<Pick<CheckAnswer, 'body' | 'isCut'>> {
  if (limit === 0) {
    response.destroy()
    return Promise.resolve({ body: Buffer.alloc(0), isCut: false })
  }
  const coding = response.headers['content-encoding']?.trim().toLowerCase() ?? 'identity'
  const decoder = DECODERS.get(coding)?.()
  if (decoder === undefined && coding !== 'identity' && coding !== '') {
    response.destroy()
    const name = escapeControls(coding.slice(0, MAX_CODING))
    return Promise.reject(new Error(`the body is encoded as ${name}, which is not read here`))
  }
  const { promise, resolve, reject } = Promise.withResolvers<Pick<CheckAnswer, 'body' | 'isCut'>>()
  const source: Readable = decoder === undefined ? response : response.pipe(decoder)
  const chunks: Buffer[] = []
  let size = 0
  function finish(): void {
    resolve({ body: Buffer.concat(chunks).subarray(0, limit), isCut: size > limit })
    response.destroy()
    decoder?.destroy()
  }
  source.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    if (size > limit) finish()
  })
  source.on('end', finish)
  response.on('error', () => (signal.aborted ? reject(signal.reason) : finish()))
  // Of what broke off, the decoder gives what it has.
  response.on('close', () => (decoder === undefined ? finish() : decoder.end()))
  decoder?.on('error', (error) => {
    if (codeOf(error) === 'Z_BUF_ERROR') finish()
    else reject(new Error(`the body is not ${coding}, as its header says`))
    response.destroy()
  })
  return promise
}

/** Node's words for an answer that it refuses are those of its parser. */
function plainError(error: Error, end: CertificateEnd | undefined): Error {
  const code = codeOf(error) ?? ''
  const wanted = clientWanted(error, end)
  if (wanted !== undefined) return new Error(wanted)
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new Error(`the answer has more than ${MAX_HEADERS / 1024} KiB of headers`)
  }
  if (!code.startsWith('HPE_')) return error
  const reason = 'reason' in error ? String(error.reason) : code
  const advice = 'browsers may take it, and so does a check with lenient'
  return new Error(`the answer is no valid HTTP (${reason.toLowerCase()}): ${advice}`)
}
