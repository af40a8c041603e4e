import { spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:https'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { t } from 'tap'
import type { Test } from 'tap'
import { startProbe } from '../helpers/ops.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { recordProcess, runFolder } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { secret } from '../helpers/secrets.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'

const key = secret('model-key')
const { lookAt } = await startProbe(t, { OPS_RUNNER: 'probe', OPS_MODEL_KEY: key })

t.test('http: a request is sent as it is written', async (t) => {
  const { url, received } = await startReceiver(t)
  const check = { type: 'http', url, timeout_s: 30 }
  const token = secret('bearer')
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const { good } = await lookAt([
    { ...check, name: 'plain' },
    { ...check, name: 'post', method: 'POST', headers, body: '{"ping":"é"}' },
    { ...check, name: 'delete', method: 'DELETE', body: 'all' },
    { ...check, name: 'empty', method: 'PUT' },
    { ...check, name: 'head', method: 'HEAD' },
    { ...check, name: 'agent', headers: { 'User-Agent': 'other' } },
  ])
  t.match(good, { plain: true, post: true, delete: true, empty: true, head: true, agent: true })
  const byMethod = Map.groupBy(received, ({ method }) => method)
  t.match(byMethod.get('POST'), [
    {
      headers: { ...headers, 'user-agent': 'gatehouse-probe' },
      body: Buffer.from('{"ping":"é"}'),
    },
  ])
  t.match(byMethod.get('DELETE'), [
    { headers: { 'content-length': '3' }, body: Buffer.from('all') },
  ])
  t.match(byMethod.get('PUT'), [{ body: Buffer.alloc(0) }])
  t.equal(byMethod.get('HEAD')?.length, 1)
  const agents = byMethod.get('GET')?.map((request) => request.headers['user-agent'])
  t.same(agents?.toSorted(), ['gatehouse-probe', 'other'])
})

t.test('http: statuses, texts, members and time are as expected', async (t) => {
  const json = {
    status: 'ok',
    db: { up: false, pools: [{ free: 3 }] },
    note: `a ${key}`,
    no: null,
  }
  const body = `<h1>Shop</h1> ${'x'.repeat(100)} <p>Basket: 3</p>`
  const { url } = await startReceiver(t, async ({ path }, response) => {
    if (path === '/slow') await new Promise((resolve) => setTimeout(resolve, 60))
    if (path === '/teapot') response.statusCode = 418
    if (path === '/moved') response.writeHead(302, { location: '/nowhere' })
    response.end(path === '/json' ? JSON.stringify(json) : body)
  })
  const check = { type: 'http', url, timeout_s: 30 }
  const member = (name: string, ...members: string[]): object => {
    return { ...check, name, url: `${url}/json`, members }
  }
  const status = (name: string, path: string, status: unknown): object => {
    return { ...check, name, url: `${url}${path}`, status }
  }
  const { good, said } = await lookAt([
    status('one', '/teapot', 418),
    status('range', '/teapot', '400-499'),
    status('list', '/teapot', [200, '300-399', '418']),
    status('other', '/teapot', ['200-299', 301]),
    { ...status('redirect', '/moved', '300-399'), redirects: 0 },
    { ...check, name: 'pattern', pattern: '*Shop*Basket: *</p>' },
    { ...check, name: 'order', pattern: 'Basket*Shop' },
    { ...check, name: 'twice', pattern: 'Shop*Shop' },
    { ...check, name: 'no star', pattern: 'Basket: 3' },
    member('members', 'status=ok', 'db.up=false', 'db.pools.0.free=3', 'no=null'),
    member('value', 'db.up=true'),
    member('absent', 'db.pools.1.free=3'),
    member('inherited', 'db.constructor=x'),
    member('secret', 'note=b'),
    { ...check, name: 'no JSON', members: ['status=ok'] },
    { ...check, name: 'slow', url: `${url}/slow`, max_ms: 20 },
    { ...check, name: 'slow warning', url: `${url}/slow`, max_ms: 20, level: 'warning' },
    { ...check, name: 'quick', max_ms: 30_000 },
  ])
  const bad = Object.keys(good).filter((name) => good[name] !== true)
  t.match(said, [
    'other: answered 418, expected 200 to 299 or 301',
    'order: answered 200 without a match of "Basket*Shop"',
    'twice: answered 200 without a match of "Shop*Shop"',
    'value: answered 200, db.up is "false", expected "true"',
    'absent: answered 200 without the member db.pools.1.free',
    'inherited: answered 200 without the member db.constructor',
    'secret: answered 200, note is "a «redacted»", expected "b"',
    'no JSON: answered 200, but not with JSON of 1 MiB at most',
    /^slow: answered 200 in \d+ ms, expected 20 ms at most$/,
    /^slow warning: answered 200 in \d+ ms, expected 20 ms at most$/,
  ])
  t.equal(said.length, bad.length)
})

t.test(
  'http: redirects are followed, and what the check sends goes to its own origin',
  async (t) => {
    const token = secret('bearer')
    const other = await startReceiver(t, ({ path }, response) => {
      response.writeHead(path === '/down' ? 503 : 200).end('other')
    })
    const own = await startReceiver(t, ({ path }, response) => {
      const [, status = '', to = ''] = /^\/(\d+)\/(.*)$/.exec(path) ?? []
      if (status === '') return void response.end('own')
      response.writeHead(Number(status), { location: decodeURIComponent(to) }).end()
    })
    const headers = { authorization: `Bearer ${token}` }
    const moved = (name: string, status: number, to: string, more = {}): object => {
      const url = `${own.url}/${status}/${encodeURIComponent(to)}`
      return { type: 'http', name, url, headers, timeout_s: 30, ...more }
    }
    const twice = `/302/${encodeURIComponent('/end')}`
    const loop = `/301/${encodeURIComponent('')}`
    const { good, said } = await lookAt([
      moved('up', 301, `${other.url}/up`),
      moved('down', 301, `${other.url}/down`),
      moved('twice', 307, twice),
      moved('once', 302, twice, { redirects: 1 }),
      moved('endless', 301, loop),
      moved('itself', 301, `${other.url}/down`, { redirects: 0 }),
      moved('status', 301, `${other.url}/up`, { status: 301 }),
      moved('file', 302, 'file:///etc/passwd'),
      moved('credentials', 302, `http://user:${token}@127.0.0.1/`),
      moved('posted', 303, '/form', { method: 'POST', body: 'x' }),
      moved('posted on', 308, '/form', { method: 'POST', body: 'x' }),
      moved('posted away', 308, `${other.url}/form`, { method: 'POST', body: 'x' }),
    ])
    t.match(good, { up: true, twice: true, itself: true, posted: true, 'posted on': true })
    t.same(said, [
      `down: answered 503 at ${other.url}/down, expected 200 to 399`,
      `once: answered 302 at ${own.url}${twice}, the end of 1 redirects`,
      `endless: answered 301 at ${own.url}${loop}, the end of 10 redirects`,
      `status: answered 200 at ${other.url}/up, expected 301`,
      'file: answered 302, whose Location leads to no address of http or https',
      'credentials: answered 302, whose Location leads to no address of http or https',
      `posted away: answered 308, which leads the body to ${other.url}: it is not sent there`,
    ])
    t.notOk(other.received.some((request) => 'authorization' in request.headers))
    const forms = own.received.filter(({ path }) => path === '/form')
    t.same(forms.map(({ method }) => method).toSorted(), ['GET', 'POST'])
    t.ok(forms.every((request) => request.headers['authorization'] === headers.authorization))
  },
)

t.test('http: bodies are read as they are encoded', async (t) => {
  const text = 'Grüße {"a": 1.10, "big": 9007199254740993, "a.b": {"c": true}}'
  const json = text.slice(text.indexOf('{'))
  const bodies: Readonly<
    Record<string, readonly [headers: Record<string, string>, body: Buffer]>
  > = {
    gzip: [{ 'content-encoding': 'gzip' }, gzipSync(text)],
    deflate: [{ 'content-encoding': 'deflate' }, deflateSync(text)],
    br: [{ 'content-encoding': 'br' }, brotliCompressSync(text)],
    zstd: [{ 'content-encoding': 'zstd' }, zstdCompressSync(text)],
    broken: [{ 'content-encoding': 'gzip' }, Buffer.from(text)],
    unknown: [{ 'content-encoding': 'compress' }, Buffer.from(text)],
    hostile: [{ 'content-encoding': 'constructor' }, Buffer.from(text)],
    bomb: [{ 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    latin: [{ 'content-type': 'text/html; charset="ISO-8859-1"' }, Buffer.from(text, 'latin1')],
    marked: [
      { 'content-type': 'text/html; charset=iso-8859-1' },
      Buffer.from(`\u{FEFF}${text}`, 'utf16le'),
    ],
    json: [{}, Buffer.from(`\u{FEFF}${json}`)],
    long: [{}, Buffer.from(' '.repeat(1024 * 1024) + text)],
  }
  const { url } = await startReceiver(t, ({ path }, response) => {
    const [headers, body] = bodies[path.slice(1)] ?? [{}, '']
    response.writeHead(200, headers).end(body)
  })
  const at = (name: string, more: object): object => {
    return { type: 'http', name, url: `${url}/${name}`, timeout_s: 30, ...more }
  }
  const contains = 'Grüße'
  const names = Object.keys(bodies).filter((name) => name !== 'json')
  const members = ['a=1.10', 'big=9007199254740993', 'a\\.b.c=true']
  const { good, said } = await lookAt([
    ...names.map((name) => at(name, { contains })),
    at('json', { members }),
  ])
  const read = Object.keys(bodies).filter((name) => good[name] === true)
  t.same(read, ['gzip', 'deflate', 'br', 'zstd', 'latin', 'marked', 'json'])
  t.same(said, [
    'broken: the body is not gzip, as its header says',
    'unknown: the body is encoded as compress, which is not read here',
    'hostile: the body is encoded as constructor, which is not read here',
    `bomb: answered 200 without "${contains}" in its first 1 MiB`,
    `long: answered 200 without "${contains}" in its first 1 MiB`,
  ])
  const wrong = { name: 'wrong', url: `${url}/json`, members: ['a=1.1'] }
  t.same((await lookAt([{ type: 'http', timeout_s: 30, ...wrong }])).said, [
    'wrong: answered 200, a is "1.10", expected "1.1"',
  ])
})

t.test(
  'http: what breaks the rules of HTTP is said, and taken where the check says so',
  async (t) => {
    const heads: Readonly<Record<string, string>> = {
      control: 'HTTP/1.1 200 OK\r\nx: a\u0001b\r\n',
      feeds: 'HTTP/1.1 200 OK\nx: y\n',
      large: `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(60)}`,
      'too large': `HTTP/1.1 200 OK\r\n${`x: ${'y'.repeat(1_000)}\r\n`.repeat(70)}`,
      other: 'SSH-2.0-OpenSSH\r\n',
    }
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined)
      socket.once('data', (bytes) => {
        const name = decodeURIComponent(/^GET \/(\S*)/.exec(bytes.toString())?.[1] ?? '')
        socket.end(`${heads[name]}content-length: 2\r\n\r\nok`)
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => server.close())
    const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const at = (name: string, more = {}): object => {
      const url = `${base}/${encodeURIComponent(name)}`
      return { type: 'http', name, url, timeout_s: 30, ...more }
    }
    const { good, said } = await lookAt([
      ...Object.keys(heads).map((name) => at(name)),
      { ...at('control', { lenient: true }), name: 'control taken' },
      { ...at('feeds', { lenient: true }), name: 'feeds taken' },
    ])
    t.match(good, { large: true, 'control taken': true, 'feeds taken': true })
    const advice = 'browsers may take it, and so does a check with lenient'
    t.same(said, [
      `control: the answer is no valid HTTP (invalid header value char): ${advice}`,
      `feeds: the answer is no valid HTTP (missing expected cr after response line): ${advice}`,
      'too large: the answer has more than 64 KiB of headers',
      `other: the answer is no valid HTTP (expected http/, rtsp/ or ice/): ${advice}`,
    ])
  },
)

/** Files of an authority, and of a certificate for 127.0.0.1 that it has signed for five days. */
async function makeCertificates(t: Test) {
  const folder = await temporaryFolder(t, 'certificates')
  const file = (name: string): string => join(folder, name)
  const openssl = (...args: readonly string[]): void => {
    const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
    if (status !== 0) throw new Error(`openssl ${args[0]}: ${stderr}`)
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', '/CN=Our authority']
  openssl('req', '-x509', ...key, ...ca, '-days', '30')
  const leaf = ['-keyout', file('leaf.key'), '-out', file('leaf.csr'), '-subj', '/CN=shop']
  openssl('req', ...key, ...leaf)
  writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial']
  const out = ['-in', file('leaf.csr'), '-extfile', file('names'), '-out', file('leaf.pem')]
  openssl('x509', '-req', ...signed, ...out, '-days', '5')
  writeFileSync(file('none.pem'), 'no certificate')
  return {
    key: readFileSync(file('leaf.key')),
    cert: readFileSync(file('leaf.pem')),
    file,
    openssl,
  }
}

/** Starts openssl's server, which takes no client without a certificate; gives its port. */
async function startStrict(
  t: Test,
  file: (name: string) => string,
  version: string,
): Promise<number> {
  const port = await freePort()
  const pair = ['-key', file('leaf.key'), '-cert', file('leaf.pem')]
  const args = ['s_server', '-accept', String(port), ...pair, '-Verify', '1', version, '-www']
  const child = spawn('openssl', args, { stdio: ['ignore', 'pipe', 'ignore'] })
  recordProcess(runFolder(), child.pid ?? 0)
  t.teardown(() => void child.kill())
  let said = ''
  child.stdout.on('data', (bytes: Buffer) => (said += bytes.toString()))
  await until(() => said.includes('ACCEPT'), 'openssl to listen')
  return port
}

t.test(
  'http and tls: a server that wants a certificate, and a chain of which another one ends first',
  { skip: lacks(deploymentParts.openssl) },
  async (t) => {
    const { openssl, file } = await makeCertificates(t)
    const ca = file('ca.pem')
    const end = 'the certificate of shop is valid for 4 more days'
    const wanted = `the server asks for a client's certificate, and checks have none; ${end}`
    for (const version of ['-tls1_2', '-tls1_3']) {
      const port = await startStrict(t, file, version)
      const { said } = await lookAt([
        { type: 'http', name: 'http', url: `https://127.0.0.1:${port}/`, ca, timeout_s: 30 },
        { type: 'tls', name: 'tls', host: '127.0.0.1', port, ca, days: 3, timeout_s: 30 },
      ])
      // By version 1.3 the server looks at certificates once the client is done; by 1.2 Node keeps none of a request.
      const expected =
        version === '-tls1_3'
          ? [`http: ${wanted}`]
          : [/^http: .* it may ask for a client's certificate/, `tls: ${wanted}`]
      t.match(said, expected, version)
      t.equal(said.length, expected.length)
    }

    const between = ['-keyout', file('between.key'), '-out', file('between.csr')]
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
    writeFileSync(file('authority'), 'basicConstraints=critical,CA:true\n')
    openssl('req', ...key, ...between, '-subj', '/CN=Between')
    const byRoot = ['-CA', ca, '-CAkey', file('ca.key'), '-CAcreateserial', '-days', '3']
    const ofBetween = ['-in', file('between.csr'), '-extfile', file('authority')]
    openssl('x509', '-req', ...byRoot, ...ofBetween, '-out', file('between.pem'))
    const byBetween = [
      '-CA',
      file('between.pem'),
      '-CAkey',
      file('between.key'),
      '-CAcreateserial',
    ]
    const ofLeaf = ['-in', file('leaf.csr'), '-extfile', file('names'), '-days', '20']
    openssl('x509', '-req', ...byBetween, ...ofLeaf, '-out', file('long.pem'))
    const cert = Buffer.concat([readFileSync(file('long.pem')), readFileSync(file('between.pem'))])
    const pair = { key: readFileSync(file('leaf.key')), cert }
    const server: Server = createServer(pair, (_, response) => void response.end('ok'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const url = `https://127.0.0.1:${port}/`
    const { said } = await lookAt([
      { type: 'http', name: 'http', url, ca, days: 14, timeout_s: 30 },
      { type: 'tls', name: 'tls', host: '127.0.0.1', port, ca, timeout_s: 30 },
    ])
    const short = 'the certificate of Between is valid for 2 more days, expected 14'
    t.same(said, [`http: answered 200, ${short}`, `tls: ${short}`])
  },
)

t.test(
  'http and tls: an authority of our own',
  { skip: lacks(deploymentParts.openssl) },
  async (t) => {
    const { key, cert, file } = await makeCertificates(t)
    const server: Server = createServer({ key, cert }, (_, response) => void response.end('ok'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    const { port } = server.address() as AddressInfo
    const check = { type: 'http', url: `https://127.0.0.1:${port}/`, timeout_s: 30 }
    const tls = { type: 'tls', host: '127.0.0.1', port, timeout_s: 30, days: 3 }
    const ca = file('ca.pem')
    const { good, states, said } = await lookAt([
      { ...check, name: 'foreign' },
      { ...check, name: 'known', ca },
      { ...check, name: 'insecure', insecure: true },
      { ...check, name: 'long enough', ca, days: 3 },
      { ...check, name: 'too short', ca, days: 14 },
      { ...check, name: 'insecure, too short', insecure: true, days: 14 },
      { ...check, name: 'no authority', ca: file('none.pem') },
      { ...check, name: 'no file', ca: file('nothing.pem') },
      { ...tls, name: 'tls foreign' },
      { ...tls, name: 'tls known', ca },
      { ...tls, name: 'tls too short', ca, days: 14 },
      { ...tls, name: 'tls no file', ca: file('nothing.pem') },
    ])
    t.match(good, { known: true, insecure: true, 'long enough': true, 'tls known': true })
    t.match(states, { 'no file': 'unknown', 'no authority': 'unknown', 'tls no file': 'unknown' })
    const short = 'the certificate of shop is valid for 4 more days, expected 14'
    const unread = /: not looked at: the authorities of .* can't be read: .*; name a PEM/
    t.match(said, [
      /^foreign: unable to verify the first certificate/,
      `too short: answered 200, ${short}`,
      `insecure, too short: answered 200, ${short}`,
      unread,
      unread,
      'tls foreign: the certificate is not trusted: UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      `tls too short: ${short}`,
      unread,
    ])
    t.equal(said.length, 8)
  },
)
