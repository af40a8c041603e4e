import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns'
import type { IncomingHttpHeaders, RequestOptions } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { http } from '../http/node-http.ts'
import { codeOf, messageOf } from '../log.ts'
import { isPublicAddress } from './addresses.ts'
import { readStart } from './read-start.ts'

/** A request that the program makes for somebody else. */
export interface OutboundRequest {
  /** http or https, without credentials. */
  url: URL
  headers: Readonly<Record<string, string>>
  body: Buffer
  /** For the whole exchange, the look-up of the name included. */
  timeoutMs: number
  /** True for a target that an operator named: it may be on a private network. */
  trusted: boolean
  /** How much of the answer's body is read; 0 when only the status counts. */
  answerBytes: number
  /** Ends the exchange early. */
  signal?: AbortSignal
  /** Connections that may be used again; without them each request has one of its own. */
  connections?: Connections
}

/**
 * What became of it. `refused`: the target's address is not public, and nothing was connected to.
 * `failed`: no answer; `reason` is one line for people, `code` that of the system, if it has one.
 */
export type OutboundResult =
  | {
      kind: 'answered'
      status: number
      ms: number
      body: Buffer
      headers: IncomingHttpHeaders
    }
  | { kind: 'refused'; reason: string; ms: number }
  | { kind: 'failed'; reason: string; code?: string | undefined; ms: number }

/** How other programs are reached. */
export interface Outbound {
  get: (request: Omit<OutboundRequest, 'body'>) => Promise<OutboundResult>
  post: (request: OutboundRequest) => Promise<OutboundResult>
}

/** How a name becomes addresses; `lookup` of node:dns asks the system. */
export type ResolveName = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void

/**
 * Connections to the targets of one caller. Only for what may arrive twice: where a kept one ends
 * without an answer, the request is sent again, once.
 */
export type Connections = ReturnType<typeof keepConnections>

/**
 * Keeps connections open between requests, `max` of them at most. Their addresses were checked when
 * they were made, so an untrusted target never gets a connection that was made for a trusted one.
 */
export function keepConnections(max: number) {
  const options = { keepAlive: true, maxSockets: max, maxFreeSockets: max }
  const agents = {
    http: { trusted: new http.Agent(options), other: new http.Agent(options) },
    https: { trusted: new HttpsAgent(options), other: new HttpsAgent(options) },
  }
  /** Look-ups under way, and who waits for each. */
  const lookups = new Map<string, Parameters<ResolveName>[2][]>()
  return {
    /**
     * Asks for a name once at a time, however many requests wait for it. The system looks up few
     * names at a time: those that wait for a silent name server hold up all others.
     */
    resolveOnce(resolveName: ResolveName): ResolveName {
      return (name, options, callback) => {
        const key = JSON.stringify([name, options])
        const waiting = lookups.get(key)
        if (waiting !== undefined) return void waiting.push(callback)
        const all = [callback]
        lookups.set(key, all)
        resolveName(name, options, (error, addresses) => {
          lookups.delete(key)
          for (const one of all) one(error, addresses)
        })
      }
    },
    agentOf({ url, trusted }: Pick<OutboundRequest, 'url' | 'trusted'>) {
      return agents[url.protocol === 'https:' ? 'https' : 'http'][trusted ? 'trusted' : 'other']
    },
    close() {
      for (const { trusted, other } of Object.values(agents)) {
        trusted.destroy()
        other.destroy()
      }
    },
  }
}

class RefusedAddress extends Error {}

const NOT_PUBLIC = 'the target is not on the public internet'

/**
 * Posts a body and reads the answer's status. The address is checked where the socket connects to
 * it, so a name that resolves to something else the second time gains nothing. Redirects are not
 * followed: their status is the answer. Never rejects.
 */
export function post(request: OutboundRequest, resolveName?: ResolveName) {
  return send('POST', request, resolveName)
}

/** The same without a body. */
export function get(request: Omit<OutboundRequest, 'body'>, resolveName?: ResolveName) {
  return send('GET', { ...request, body: Buffer.alloc(0) }, resolveName)
}

/** Asks for the head of an answer alone. */
export function head(request: Omit<OutboundRequest, 'body'>, resolveName?: ResolveName) {
  return send('HEAD', { ...request, body: Buffer.alloc(0) }, resolveName)
}

async function send(
  method: 'GET' | 'HEAD' | 'POST',
  request: OutboundRequest,
  resolveName: ResolveName = lookup,
): Promise<OutboundResult> {
  const { url, headers, body, timeoutMs, trusted, signal, connections } = request
  const started = performance.now()
  const elapsed = () => Math.round(performance.now() - started)
  // An address is connected to without any look-up, so it is checked here.
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (!trusted && isIP(host) !== 0 && !isPublicAddress(host)) {
    return { kind: 'refused', reason: NOT_PUBLIC, ms: elapsed() }
  }
  const resolve = connections?.resolveOnce(resolveName) ?? resolveName
  // Taken back at the end: a timer for each of thousands of requests would outlive them.
  const ending = new AbortController()
  const end = () => ending.abort()
  const timer = setTimeout(end, timeoutMs)
  signal?.addEventListener('abort', end)
  if (signal?.aborted === true) end()
  const options: RequestOptions = {
    method,
    headers: method === 'POST' ? { ...headers, 'content-length': body.length } : headers,
    agent: connections?.agentOf(request) ?? false,
    signal: ending.signal,
    lookup: trusted ? (resolve as LookupFunction) : publicOnly(resolve),
  }
  try {
    return await exchange(request, options, elapsed)
  } catch (error) {
    const ms = elapsed()
    if (error instanceof RefusedAddress) return { kind: 'refused', reason: error.message, ms }
    const late = error instanceof Error && error.name === 'AbortError'
    const reason = late
      ? `no answer within ${signal?.aborted === true ? ms / 1000 : timeoutMs / 1000} s`
      : messageOf(error)
    return { kind: 'failed', reason, code: codeOf(error), ms }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', end)
  }
}

/** Rejects without an answer, and for a header that HTTP can't carry. */
function exchange(
  request: OutboundRequest,
  options: RequestOptions,
  elapsed: () => number,
): Promise<OutboundResult> {
  const { url, body, answerBytes } = request
  const send = url.protocol === 'https:' ? httpsRequest : http.request
  return new Promise((resolve, reject) => {
    // Once there is an answer it counts, whatever else happens to the connection.
    let answered = false
    const outgoing = send(url, options, (response) => {
      const ms = elapsed()
      answered = true
      const { statusCode: status = 0, headers: answer } = response
      readStart(response, answerBytes, (start) =>
        resolve({ kind: 'answered', status, ms, body: start, headers: answer }),
      )
    })
    outgoing.on('error', (error) => {
      if (answered) return
      // Mostly the target closed an idle connection before it saw the request. Other kept ones may
      // be as old, so it goes on a connection of its own.
      const stale = outgoing.reusedSocket && codeOf(error) === 'ECONNRESET'
      if (stale) resolve(exchange(request, { ...options, agent: false }, elapsed))
      else reject(error)
    })
    outgoing.on('close', () => {
      // An unasked-for switch of protocols (101) closes the connection without an error.
      if (!answered) reject(new Error('the connection was closed without an answer'))
    })
    outgoing.end(body)
  })
}

/**
 * The look-up of a connection that may only lead to the public internet: it gives the public
 * addresses of a name and leaves out the others. A name without any is refused. The addresses that
 * are connected to are the ones that were checked.
 */
export function publicOnly(resolveName: ResolveName): LookupFunction {
  return (name, options, callback) => {
    resolveName(name, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, [])
      const open = addresses.filter(({ address }) => isPublicAddress(address))
      const [first] = open
      if (first === undefined) return callback(new RefusedAddress(NOT_PUBLIC), [])
      if (options.all === true) callback(null, open)
      else callback(null, first.address, first.family)
    })
  }
}

/**
 * Whether a target can be reached on the public internet; undefined for a name that is not known
 * now. A target is checked again whenever it is connected to.
 */
export async function isPublicTarget(
  { hostname }: URL,
  resolveName: ResolveName = lookup,
): Promise<boolean | undefined> {
  const host = hostname.replace(/^\[|\]$/g, '')
  if (isIP(host) !== 0) return isPublicAddress(host)
  const found = Promise.withResolvers<readonly LookupAddress[]>()
  resolveName(host, { all: true }, (_error, addresses = []) => found.resolve(addresses))
  const addresses = await found.promise
  if (addresses.length === 0) return undefined
  return addresses.some(({ address }) => isPublicAddress(address))
}
