import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import { request as httpRequest, type RequestOptions, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { messageOf } from '../log.ts'
import { isPublicAddress } from './addresses.ts'

/** A request that the program makes for somebody else. */
export interface OutboundRequest {
  /** http or https, without credentials. */
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
  /** For the whole exchange, the look-up of the name included. */
  readonly timeoutMs: number
  /** True for a target that an operator named: it may be on a private network. */
  readonly trusted: boolean
  /** How much of the answer's body is read; 0 when only the status counts. */
  readonly answerBytes: number
  /** Ends the exchange early. */
  readonly signal?: AbortSignal
}

/**
 * What became of it. `refused`: the target's address is not public, and nothing was connected to.
 * `failed`: no answer; `reason` is one line for people.
 */
export type OutboundResult =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly ms: number
      readonly body: Buffer
    }
  | { readonly kind: 'refused' | 'failed'; readonly reason: string; readonly ms: number }

/** How a name becomes addresses; `lookup` of node:dns asks the system. */
export type ResolveName = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

class RefusedAddress extends Error {}

const NOT_PUBLIC = 'the target is not on the public internet'

/**
 * Posts a body and reads the answer's status. The address is checked where the socket connects to
 * it, so a name that resolves to something else the second time gains nothing. Redirects are not
 * followed: their status is the answer. Never rejects.
 */
export function post(
  { url, headers, body, timeoutMs, trusted, answerBytes, signal }: OutboundRequest,
  resolveName: ResolveName = lookup,
): Promise<OutboundResult> {
  const started = performance.now()
  const elapsed = (): number => Math.round(performance.now() - started)
  // An address is connected to without any look-up, so it is checked here.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!trusted && isIP(host) !== 0 && !isPublicAddress(host)) {
    return Promise.resolve({ kind: 'refused', reason: NOT_PUBLIC, ms: elapsed() })
  }
  return new Promise((resolve) => {
    const options: RequestOptions = {
      method: 'POST',
      headers: { ...headers, 'content-length': body.length },
      agent: false,
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])]),
      lookup: trusted ? (resolveName as LookupFunction) : publicOnly(resolveName),
    }
    let answered = false
    function fail(error: unknown): void {
      // Once there is an answer it counts, whatever else happens to the connection.
      if (answered) return
      if (error instanceof RefusedAddress) {
        return resolve({ kind: 'refused', reason: error.message, ms: elapsed() })
      }
      const late =
        error instanceof Error && (error.name === 'AbortError' || error.name === 'TimeoutError')
      const reason = late
        ? `no answer within ${signal?.aborted === true ? elapsed() / 1000 : timeoutMs / 1000} s`
        : messageOf(error)
      resolve({ kind: 'failed', reason, ms: elapsed() })
    }
    try {
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest
      const outgoing = send(url, options, (response) => {
        const ms = elapsed()
        answered = true
        readStart(response, answerBytes, (start) =>
          resolve({ kind: 'answered', status: response.statusCode ?? 0, ms, body: start }),
        )
      })
      outgoing.on('error', fail)
      // An unasked-for switch of protocols (101) closes the connection without an error.
      outgoing.on('close', () => fail(new Error('the connection was closed without an answer')))
      outgoing.end(body)
    } catch (error) {
      // TypeError: a header that HTTP can't carry.
      fail(error)
    }
  })
}

/**
 * The look-up of a connection that may only lead to the public internet: the addresses that it
 * connects to are the ones that were checked, and one that is not public refuses the name.
 */
export function publicOnly(resolveName: ResolveName): LookupFunction {
  return (name, options, callback) => {
    resolveName(name, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const [first] = addresses
      if (first === undefined || addresses.some(({ address }) => !isPublicAddress(address))) {
        return callback(new RefusedAddress(NOT_PUBLIC), [])
      }
      if (options.all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })
  }
}

/**
 * Reads the first `limit` bytes of an answer and drops the connection: the body may be endless. One
 * that breaks off is as good as a short one.
 */
export function readStart(
  response: IncomingMessage,
  limit: number,
  done: (start: Buffer) => void,
): void {
  const chunks: Buffer[] = []
  let size = 0
  response.on('close', () => done(Buffer.concat(chunks).subarray(0, limit)))
  response.on('error', () => undefined)
  if (limit === 0) return void response.destroy()
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    if (size >= limit) response.destroy()
  })
}
