import { connect } from 'node:net'
import { STATUS_CODES } from 'node:http'

/** A request as its bytes are to be: nothing in it is corrected. */
export type WireRequest = {
  readonly method: string
  /** What stands in the request line. */
  readonly target: string
  /** One character a byte. */
  readonly headers: readonly (readonly [string, string])[]
  readonly body: Buffer | undefined
  readonly framing: Framing
}

/**
 * How the end of a body is told: by its length, in chunks, or wrongly: with a length that is too small or
 * too large, in both ways, or in none.
 */
export const FRAMINGS = ['length', 'chunked', 'short', 'long', 'both', 'none'] as const
export type Framing = (typeof FRAMINGS)[number]

/** An answer as its bytes were; names of headers in lower case. */
export type WireAnswer = {
  readonly status: number
  readonly headers: ReadonlyMap<string, readonly string[]>
  readonly head: string
  /** Of a stream: what came with its head. */
  readonly body: Buffer
  /** What came after it on a connection that was to be closed. */
  readonly extra: Buffer
  readonly streams: boolean
}

/** Whether the end of its body is told rightly. */
export function isFramed({ framing, body }: WireRequest): boolean {
  return framing === 'length' || framing === 'chunked' || body === undefined
}

/** Sends a request on a connection of its own; undefined when it was closed without an answer. */
export function exchange(
  { hostname, port }: URL,
  request: WireRequest,
  timeoutMs = 30_000,
): Promise<WireAnswer | undefined> {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const done = Promise.withResolvers<WireAnswer | undefined>()
  let got: Buffer = Buffer.alloc(0)
  const timer = setTimeout(() => {
    socket.destroy()
    done.reject(new Error(`no whole answer within ${timeoutMs} ms; so far: ${text(got)}`))
  }, timeoutMs)
  socket.on('data', (chunk: Buffer) => {
    got = Buffer.concat([got, chunk])
    const answer = readAnswer(got, request.method)
    if (answer?.streams === true) socket.destroy()
  })
  // A reset is one way for a server to refuse; what it said before is what counts.
  socket.on('error', () => undefined)
  socket.on('close', () => {
    clearTimeout(timer)
    if (got.length === 0) return done.resolve(undefined)
    const answer = readAnswer(got, request.method)
    if (answer === undefined) done.reject(new Error(`no whole answer: ${text(got)}`))
    else done.resolve(answer)
  })
  socket.write(bytesOf(request))
  // Who has announced more than there is says that nothing follows.
  if (!isFramed(request)) socket.end()
  return done.promise
}

/** The bytes of a request. */
function bytesOf({ method, target, headers, body, framing }: WireRequest): Buffer {
  const framed = body === undefined ? [] : framingHeaders(body, framing)
  const lines = [...headers, ...framed].map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n`, 'latin1')
  if (body === undefined) return head
  const chunked = framing === 'chunked' || framing === 'both'
  return Buffer.concat([head, ...(chunked ? chunks(body) : [body])])
}

function framingHeaders(body: Buffer, framing: Framing): [string, string][] {
  const length = (by: number): [string, string] => [
    'content-length',
    String(Math.max(0, body.length + by)),
  ]
  const chunked: [string, string] = ['transfer-encoding', 'chunked']
  if (framing === 'none') return []
  if (framing === 'chunked') return [chunked]
  if (framing === 'both') return [length(0), chunked]
  return [length({ length: 0, short: -1, long: 1 }[framing])]
}

function chunks(body: Buffer): Buffer[] {
  const half = Math.ceil(body.length / 2)
  const pieces = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0)
  const coded = pieces.flatMap((piece) => [
    Buffer.from(`${piece.length.toString(16)}\r\n`),
    piece,
    Buffer.from('\r\n'),
  ])
  return [...coded, Buffer.from('0\r\n\r\n')]
}

/** The first answer in the bytes that are not 100 Continue; undefined while it is not whole. */
function readAnswer(bytes: Buffer, method: string): WireAnswer | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.subarray(0, end).toString('latin1')
  const rest = bytes.subarray(end + 4)
  const [first = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1] ?? 0)
  if (status === 100) return readAnswer(rest, method)
  const headers = new Map<string, string[]>()
  for (const line of lines) {
    const [, name = line, value = ''] = /^([^:]*):\s*(.*)$/s.exec(line) ?? []
    headers.set(name.toLowerCase(), [...(headers.get(name.toLowerCase()) ?? []), value])
  }
  const bare = method === 'HEAD' || status === 204 || status === 304
  const [length] = headers.get('content-length') ?? []
  const streams = status === 101 || (!bare && length === undefined)
  const size = bare || streams ? 0 : Number(length)
  if (rest.length < size) return undefined
  const body = streams ? rest : rest.subarray(0, size)
  return { status, headers, head, body, extra: rest.subarray(body.length), streams }
}

/** A line of a shell that sends the request again, as far as curl can. */
export function curlLine(base: string, { method, target, headers, body }: WireRequest): string {
  const sent = headers.flatMap(([name, value]) => ['-H', quoted(`${name}: ${value}`)])
  const data = body === undefined ? [] : ['--data-binary', quoted(body.toString('latin1'))]
  const url = target.startsWith('/')
    ? [quoted(base + target)]
    : ['--request-target', quoted(target), quoted(base)]
  const verb = method === 'HEAD' ? ['-I'] : ['-X', quoted(method)]
  return ['curl', '-si', '--path-as-is', '-g', ...verb, ...sent, ...data, ...url].join(' ')
}

/** As bash reads it; one character a byte. */
function quoted(bytes: string): string {
  if (/^[ -&(-~]*$/.test(bytes)) return `'${bytes}'`
  const escaped = bytes.replaceAll(/[^ -&(-[\]-~]/g, (character) => {
    return `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  })
  return `$'${escaped}'`
}

function text(bytes: Buffer): string {
  return bytes.subarray(0, 300).toString('utf8')
}

/** How an answer begins, for people. */
export function told({ status, body }: WireAnswer): string {
  return `${status} ${STATUS_CODES[status] ?? ''}: ${text(body)}`
}
