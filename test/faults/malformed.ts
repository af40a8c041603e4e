/** A request that no client would send, and what comes of it. Its text goes out as latin1. */
export type Malformed = {
  readonly name: string
  readonly text: string
  /** Statuses of the answers, in order; the connection ends behind them. */
  readonly answers: readonly number[]
}

/** What the cases are made of, for one service. */
export type Target = {
  /** The request line of a route that takes a body. */
  readonly line: string
  /** Its headers but `Host` and those that say how long the body is. */
  readonly headers: readonly string[]
  /** A whole request that changes something, if it is ever heard. */
  readonly poison: string
}

const PROBE = 'GET /healthz HTTP/1.1'
const HOST = 'Host: localhost'
const CHUNKED = 'Transfer-Encoding: chunked'
const LAST = 'Connection: close'

/**
 * More than a hundred. Behind each stands the poison, where somebody who reads the request otherwise
 * than we do would see a second one.
 */
export function malformedRequests({ line, headers, poison }: Target): readonly Malformed[] {
  const cases: Malformed[] = []
  function add(name: string, text: string, ...answers: readonly number[]) {
    cases.push({ name, text: text + poison, answers })
  }
  const post = (body: string, ...more: readonly string[]) =>
    head(line, ...headers, HOST, ...more) + body

  for (const first of LINES) add(`line ${JSON.stringify(first)}`, head(first, HOST), 400)
  for (const hosts of HOSTS) add(`[${hosts.join('; ')}]`, head(PROBE, ...hosts), 400)
  for (const lines of HEADERS) add(JSON.stringify(lines), head(PROBE, HOST, ...lines), 400)
  for (const lengths of LENGTHS) {
    const lines = lengths.map((value) => `Content-Length: ${value}`)
    add(`[${lines.join('; ')}]`, post('xx', ...lines), 400)
  }
  for (const lines of CODINGS) add(`[${lines.join('; ')}]`, post('0\r\n\r\n', ...lines), 400)
  for (const body of CHUNKS) add(`chunk ${JSON.stringify(body)}`, post(body, CHUNKED), 400)
  for (const [name, text] of Object.entries(OTHERS)) add(name, text, 400)

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
export function head(...lines: readonly string[]): string {
  return `${lines.join('\r\n')}\r\n\r\n`
}

const LINES: readonly string[] = [
  'NONSENSE',
  '',
  'GET',
  'GET /healthz',
  'GET HTTP/1.1',
  'GET  HTTP/1.1',
  'get /healthz HTTP/1.1',
  'BREW /healthz HTTP/1.1',
  `${'X'.repeat(20_000)} / HTTP/1.1`,
  'GET /heal thz HTTP/1.1',
  'GET\t/healthz\tHTTP/1.1',
  'GET healthz HTTP/1.1',
  'GET /heal\x00thz HTTP/1.1',
  'GET /\x7f HTTP/1.1',
  'GET /\xff\xfe HTTP/1.1',
  'GET /healthz HTTP/1.2',
  'GET /healthz HTTP/2.0',
  'GET /healthz HTTP/3.0',
  'GET /healthz HTTP/11',
  'GET /healthz HTTP/1.10',
  'GET /healthz http/1.1',
  'GET http://evil.example/healthz HTTP/1.1',
  'GET http://localhost:1/healthz HTTP/1.1',
  'GET http://user:password@localhost/healthz HTTP/1.1',
]

const HOSTS: readonly (readonly string[])[] = [
  [],
  [HOST, HOST],
  [HOST, 'Host: evil.example'],
  ['Host: evil.example', 'hOST: localhost'],
  ['Host: local host'],
  ['Host: localhost/healthz'],
  ['Host: user@localhost'],
  ['Host: localhost, evil.example'],
  ['Host: localhost:port'],
  ['Host: [::1'],
  ['Host: \xe9vil.example'],
]

const HEADERS: readonly (readonly string[])[] = [
  ['X-A: b', ' c'],
  ['X-A: b', '\tc'],
  ['X-A: a\x00b'],
  ['X-A: a\x7fb'],
  ['X\x00A: b'],
  ['X-A : b'],
  ['X A: b'],
  ['X(A): b'],
  ['X\xe9: b'],
  ['X-A'],
  [': b'],
  ['X-A: b\rX-B: c'],
  ['X-A: b\nX-B: c'],
]

const LENGTHS: readonly (readonly string[])[] = [
  ['2', '3'],
  ['2', '2'],
  ['2, 2'],
  ['-1'],
  ['+2'],
  ['0x2'],
  ['2.0'],
  ['2 2'],
  [''],
  ['two'],
  ['18446744073709551616'],
  ['99999999999999999999999'],
]

const CODINGS: readonly (readonly string[])[] = [
  ['Content-Length: 5', CHUNKED],
  [CHUNKED, 'Content-Length: 5'],
  [CHUNKED, CHUNKED],
  ['Transfer-Encoding: identity', CHUNKED],
  [CHUNKED, 'Transfer-Encoding: identity'],
  ['Transfer-Encoding: chunked, chunked'],
  ['Transfer-Encoding: gzip, chunked'],
  ['Transfer-Encoding: chunked, gzip'],
  ['Transfer-Encoding: xchunked'],
  ['Transfer-Encoding: "chunked"'],
  ['Transfer-Encoding: chunked;q=1'],
  ['Transfer-Encoding: \x0bchunked'],
  ['Transfer-Encoding: identity'],
  ['Transfer-Encoding: '],
  ['Transfer-Encoding : chunked'],
  ['Transfer-Encoding:', ' chunked'],
  ['Content-Length : 5'],
]

const CHUNKS: readonly string[] = [
  'zz\r\nxx\r\n0\r\n\r\n',
  '-1\r\nxx\r\n0\r\n\r\n',
  '+2\r\nxx\r\n0\r\n\r\n',
  '0x2\r\nxx\r\n0\r\n\r\n',
  ' 2\r\nxx\r\n0\r\n\r\n',
  '2 \r\nxx\r\n0\r\n\r\n',
  '2\nxx\n0\n\n',
  '2\rxx\r\n0\r\n\r\n',
  '\r\nxx\r\n0\r\n\r\n',
  '2\r\nxxxx\r\n0\r\n\r\n',
  '2\r\nx\r\n0\r\n\r\n',
  '10000000000000002\r\nxx\r\n0\r\n\r\n',
  '2;a\nb\r\nxx\r\n0\r\n\r\n',
  '2;a="\r\n"\r\nxx\r\n0\r\n\r\n',
  '2;a\x00\r\nxx\r\n0\r\n\r\n',
  '0\r\nX A: b\r\n\r\n',
  '0\r\nNONSENSE\r\n\r\n',
  '0\r\nContent-Length: 50\r\n\r\n',
  '0\r\nTransfer-Encoding: chunked\r\n\r\n',
]

const OTHERS: Readonly<Record<string, string>> = {
  zeros: '\x00'.repeat(2_000),
  'a hello of TLS': `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03${'\xab'.repeat(64)}`,
  'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x12\x04\x00\x00\x00\x00\x00',
  SSH: 'SSH-2.0-OpenSSH_9.2\r\n',
  mail: 'EHLO example.com\r\n',
  'line feeds alone': `${PROBE}\n${HOST}\n\n`,
  'one line feed alone': `${PROBE}\r\n${HOST}\nX-A: b\r\n\r\n`,
  'a folded first header': `${PROBE}\r\n X-A: b\r\n${HOST}\r\n\r\n`,
  'a space before the method': ` ${head(PROBE, HOST)}`,
}

/** The headers of a request for a WebSocket. */
export const WEB_SOCKET = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
]

/** Lines that announce a body, which no request for a WebSocket has. */
export const BODIES: readonly string[] = [
  'Content-Length: 5',
  'Transfer-Encoding: chunked',
  'Expect: 100-continue\r\nContent-Length: 5',
]

/** Bytes, in hex, that are no frame of a client, or none that may come first. */
export const FRAMES: Readonly<Record<string, string>> = {
  'without a mask': '810161',
  'with a reserved bit': 'c1810000000061',
  'of an unknown kind': '838000000000',
  'a ping in parts': '098000000000',
  'a ping of 128 bytes': `89fe008000000000${'00'.repeat(128)}`,
  'of 2^64 bytes': '81ffffffffffffffffff00000000',
  'of 256 MiB': '81ff000000001000000000000000',
  'the rest of nothing': '808000000000',
  'a message within another': '0181000000006181810000000061',
  'no UTF-8': '818200000000c328',
  'a close of one byte': '88810000000003',
  'a close without a reason that exists': '88820000000003ec',
  'HTTP instead': Buffer.from('GET / HTTP/1.1\r\n\r\n').toString('hex'),
  'no JSON': '8183000000006f6e65',
}
