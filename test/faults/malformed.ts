import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A request that no client would send, and what comes of it. Its text goes out as latin1. */
type Malformed = {
  name: string
  text: string
  /** Statuses of the answers, in order; the connection ends behind them. */
  answers: readonly number[]
}

/** What the cases are made of, for one service. */
export type Target = {
  /** The request line of a route that takes a body. */
  line: string
  /** Its headers but `Host` and those that say how long the body is. */
  headers: readonly string[]
  /** A whole request that changes something, if it is ever heard. */
  poison: string
}

/** Request lines, lines of a head, bodies and frames that are wrong, each by itself. */
type Wrong = {
  lines: readonly string[]
  hosts: readonly (readonly string[])[]
  headers: readonly (readonly string[])[]
  lengths: readonly (readonly string[])[]
  codings: readonly (readonly string[])[]
  chunks: readonly string[]
  others: Readonly<Record<string, string>>
  /** Lines that announce a body, which no request for a WebSocket has. */
  webSocketBodies: readonly string[]
  /** Bytes, in hex, that are no frame of a client, or none that may come first. */
  frames: Readonly<Record<string, string>>
}
const FILE = join(import.meta.dirname, '../fixtures/malformed.json')
export const WRONG: Wrong = JSON.parse(readFileSync(FILE, 'utf8'))

const PROBE = 'GET /healthz HTTP/1.1'
const HOST = 'Host: localhost'
const CHUNKED = 'Transfer-Encoding: chunked'
const LAST = 'Connection: close'

/**
 * More than a hundred. Behind each stands the poison, where somebody who reads the request otherwise
 * than we do would see a second one.
 */
export function malformedRequests({ line, headers, poison }: Target) {
  const { lines, hosts, headers: headerLines, lengths, codings, chunks, others } = WRONG
  const cases: Malformed[] = []
  function add(name: string, text: string, ...answers: readonly number[]) {
    cases.push({ name, text: text + poison, answers })
  }
  const post = (body: string, ...more: readonly string[]) =>
    head(line, ...headers, HOST, ...more) + body

  for (const first of [...lines, `${'X'.repeat(20_000)} / HTTP/1.1`])
    add(`line ${JSON.stringify(first)}`, head(first, HOST), 400)
  for (const all of hosts) add(`[${all.join('; ')}]`, head(PROBE, ...all), 400)
  for (const one of headerLines) add(JSON.stringify(one), head(PROBE, HOST, ...one), 400)
  for (const values of lengths) {
    const own = values.map((value) => `Content-Length: ${value}`)
    add(`[${own.join('; ')}]`, post('xx', ...own), 400)
  }
  for (const one of codings) add(`[${one.join('; ')}]`, post('0\r\n\r\n', ...one), 400)
  for (const body of chunks) add(`chunk ${JSON.stringify(body)}`, post(body, CHUNKED), 400)
  for (const [name, text] of Object.entries(others)) add(name, text, 400)

  add('zeros', '\x00'.repeat(2_000), 400)
  const long = 'x'.repeat(17_000)
  add('a head over 16 KiB', head(PROBE, HOST, `X-A: ${long}`), 431)
  add('a target over 16 KiB', head(`GET /${long} HTTP/1.1`, HOST), 431)
  add('more than a thousand headers', head(PROBE, ...Array<string>(1_001).fill('A:'), HOST), 431)
  add('a trailer over 16 KiB', post(`0\r\nX-A: ${long}\r\n\r\n`, CHUNKED), 431)

  // Heard as far as they make sense: what stands behind them is no request of theirs.
  add('CONNECT', head('CONNECT localhost:80 HTTP/1.1', HOST))
  add('CONNECT to a path', head('CONNECT /healthz HTTP/1.1', HOST))
  add('TRACE', head('TRACE /healthz HTTP/1.1', HOST, LAST), 405)
  add('a method of WebDAV', head('PROPFIND /healthz HTTP/1.1', HOST, LAST), 405)
  add('OPTIONS of the whole server', head('OPTIONS * HTTP/1.1', HOST, LAST), 404)
  add('a URL of another scheme', head('GET ftp://localhost/api/ HTTP/1.1', HOST, LAST), 404)
  add('a fragment', head('GET /api/#top HTTP/1.1', HOST, LAST), 404)
  add('broken percent-encoding', head('GET /api/%zz%/%00 HTTP/1.1', HOST, LAST), 404)
  add('chunks in HTTP/1.0', `${head('GET /healthz HTTP/1.0', HOST, CHUNKED)}0\r\n\r\n`, 400)
  const kept = head('GET /healthz HTTP/1.0', HOST, 'Connection: keep-alive', CHUNKED)
  add('chunks in HTTP/1.0, kept open', `${kept}0\r\n\r\n`, 400)
  add('nonsense behind a request', `${head(PROBE, HOST)}NONSENSE\r\n\r\n`, 200)
  add('two requests and nonsense', `${head(PROBE, HOST).repeat(2)}NONSENSE\r\n\r\n`, 200, 200)
  add(
    'more than was promised',
    `${head('POST /healthz HTTP/1.1', HOST, 'Content-Length: 2')}xxxx`,
    405,
    400,
  )
  add('something behind the last request', head(PROBE, HOST, LAST), 200)
  add('an expectation nobody knows', head(PROBE, HOST, LAST, 'Expect: the-moon'), 200)
  add('bytes over 127 in a value', head(PROBE, HOST, LAST, 'X-A: \xe9\xff'), 200)
  add('names of objects', head(PROBE, HOST, LAST, '__proto__: x', 'constructor: y'), 200)
  for (const protocol of ['gopher', 'h2c', 'HTTP/2.0', '']) {
    const upgrade = ['Connection: Upgrade', `Upgrade: ${protocol}`]
    add(`an upgrade to "${protocol}"`, head(PROBE, HOST, ...upgrade), 200)
  }
  add('a WebSocket elsewhere', head(PROBE, HOST, ...WEB_SOCKET), 200)
  for (const method of ['GET', 'HEAD']) {
    const body = `Content-Length: ${poison.length}`
    add(
      `${method} with a body`,
      head(`${method} /healthz HTTP/1.1`, HOST, LAST, body) + poison,
      200,
    )
  }
  return cases
}

/** A head: lines, and the empty one. */
export function head(...lines: readonly string[]) {
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** The headers of a request for a WebSocket. */
export const WEB_SOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]
