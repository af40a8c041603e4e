import { hash } from 'node:crypto'
import { request as send, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { readOpenMetrics } from '../fixtures/open-metrics.ts'
import { recordExchange } from '../runner/exchanges.ts'
import { transcript } from './secrets.ts'
import { noteSeen } from './until.ts'

/** A request, byte by byte as a test wants it: nothing is followed, decoded or retried. */
export type RequestOptions = {
  method?: string
  /** The request's target as it goes over the wire, where a URL would change it (`/a/../b`). */
  path?: string
  /** An array sends the header once for each value. `Host` and `Origin` may be anything. */
  headers?: Record<string, string | readonly string[]>
  /** Bytes with a length; an array is sent chunked, piece by piece. */
  body?: string | Uint8Array | readonly (string | Uint8Array)[]
  /** The response shows a secret by design: keep it out of the transcript. */
  secretShown?: boolean
  /** An event stream has no end: its head is enough. */
  streamHead?: boolean
  /** Unix socket to connect to instead of the URL's host and port. */
  socketPath?: string
  /** Loopback address to come from, `127.0.0.2` for instance. */
  localAddress?: string
  /** Limit for the whole exchange, 60 s when absent: no test is about a slow machine. */
  timeoutMs?: number
  /** Ends the exchange before that. */
  signal?: AbortSignal | undefined
}

/** A whole response. Header names are lower-case in `headers`, as sent in `rawHeaders`. */
export type Response = Awaited<ReturnType<typeof read>>

const RECORDED_BYTES = 1 << 20
/** A longer body is recorded once. */
const LONG_BYTES = 1_000

/** What a page says, without its markup. */
export function wordsOf(html: string) {
  return html.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' ')
}

/** Sends one request on a connection of its own and reads the whole response. */
export function request(url: string, options: RequestOptions = {}) {
  const { method = 'GET', path, body, timeoutMs = 60_000, socketPath, localAddress } = options
  const done = Promise.withResolvers<Response>()
  const limit = AbortSignal.timeout(timeoutMs)
  const outgoing = send(url, {
    method,
    agent: false,
    signal: options.signal ? AbortSignal.any([limit, options.signal]) : limit,
    ...(path === undefined ? {} : { path }),
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(localAddress === undefined ? {} : { localAddress }),
  })
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    outgoing.setHeader(name, typeof value === 'string' ? value : [...value])
  }
  // A server may answer and close before it has read the body (413): its answer counts.
  let answered = false
  outgoing.on('error', (error) => {
    const reason =
      error.name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : error.message
    if (!answered) done.reject(new Error(`${method} ${new URL(url).pathname}: ${reason}`))
  })
  outgoing.on('response', (incoming) => {
    answered = true
    read(incoming, options.streamHead).then((response) => {
      record(method, response, options.secretShown === true)
      noteSeen(`${method} ${outgoing.path} → ${response.status} ${response.text}`)
      if (socketPath === undefined && method !== 'HEAD') keep(url, method, options, response)
      done.resolve(response)
    }, done.reject)
  })
  if (isPieces(body)) {
    for (const piece of body) outgoing.write(piece)
    outgoing.end()
  } else {
    outgoing.end(body)
  }
  return done.promise
}

function isPieces(body: RequestOptions['body']): body is readonly (string | Uint8Array)[] {
  return Array.isArray(body)
}

async function read(incoming: IncomingMessage, streamHead = false) {
  const chunks: Buffer[] = []
  const streams = incoming.headers['content-type']?.startsWith('text/event-stream') === true
  if (streamHead && streams) incoming.destroy()
  else for await (const chunk of incoming) chunks.push(Buffer.from(chunk))
  const body = Buffer.concat(chunks)
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    rawHeaders: incoming.rawHeaders,
    body,
    text: body.toString('utf8'),
    /** The body read as JSON, of the type that the test then checks. */
    json<T = unknown>(): T {
      return JSON.parse(body.toString('utf8'))
    },
  }
}

/** For the check of an API against its document, which has no HEAD: it is GET without a body. */
function keep(url: string, method: string, options: RequestOptions, answer: Response) {
  const { headers = {}, body = '' } = options
  const pieces = isPieces(body) ? body : [body]
  recordExchange(url, {
    method,
    headers,
    body: Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString('base64'),
    status: answer.status,
    answerHeaders: answer.headers,
    answer: answer.body.toString('base64'),
  })
}

/** Long bodies that stand in the transcript, by their hash: who waits gets the same again and again. */
const recorded = new Set<string>()

/** Only the answer: the request's address may hold a token by right. */
function record(method: string, response: Response, secretShown: boolean) {
  if (secretShown) return
  const pairs = response.rawHeaders.map((text, at) => text + (at % 2 === 0 ? ': ' : '\n'))
  const head = Buffer.from(`\n--- ${method} ${response.status}\n${pairs.join('')}\n`)
  const body = response.body.subarray(0, RECORDED_BYTES)
  const key = body.length < LONG_BYTES ? '' : hash('sha1', body)
  transcript('http', recorded.has(key) ? head : Buffer.concat([head, body]))
  if (key !== '') recorded.add(key)
}

/** `until` ends the exchange early; `timeoutMs` always does, after 30 s when absent. */
export type RawOptions = { host?: string; timeoutMs?: number; until?: (text: string) => boolean }

type Piece = string | Uint8Array

/**
 * Writes bytes as they are, for HTTP that no client would send, and collects the answer until the
 * server closes; `closed` is false when the limit ended the exchange. Each piece of an array travels in a packet of its own.
 */
export async function rawExchange(
  port: number,
  content: Piece | readonly Piece[],
  { host = '127.0.0.1', timeoutMs = 30_000, until = () => false }: RawOptions = {},
) {
  const chunks: Buffer[] = []
  const done = Promise.withResolvers<boolean>()
  const socket = connect({ host, port, noDelay: true })
  const timer = setTimeout(() => done.resolve(false), timeoutMs)
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    if (until(Buffer.concat(chunks).toString('latin1'))) done.resolve(false)
  })
  socket.on('close', () => done.resolve(true))
  // A reset is one way for a server to refuse; what it said before is what counts.
  socket.on('error', () => undefined)
  socket.on('connect', async () => {
    for (const piece of isPieces(content) ? content : [content]) {
      if (socket.writable) socket.write(piece)
      await pause(5)
    }
  })
  const closed = await done.promise
  clearTimeout(timer)
  socket.destroy()
  const bytes = Buffer.concat(chunks)
  transcript('http', bytes, 'raw')
  return { bytes, text: bytes.toString('utf8'), closed }
}

/**
 * How many requests of a route, by its pattern, a server has answered with a status. The log leaves out refusals
 * that repeat within a second; the metrics count all.
 */
export async function countAnswers(base: string, route: string, status: number) {
  const { text } = await request(`${base}/metrics`)
  const samples = readOpenMetrics(text).get('gatehouse_http_requests')?.samples ?? []
  const found = samples.find(
    ({ labels }) => labels.includes(`route="${route}"`) && labels.includes(`status="${status}"`),
  )
  return found?.value ?? 0
}

/** The path that a reply leads to, without the query that says what was done. */
export function leadsTo({ headers }: Pick<Response, 'headers'>) {
  return String(headers.location).split('?')[0] ?? ''
}

/** What the first group of a global pattern holds at each of its places in a text. */
export function allIn(text: string, pattern: RegExp) {
  return [...text.matchAll(pattern)].map(([, found = '']) => found)
}
