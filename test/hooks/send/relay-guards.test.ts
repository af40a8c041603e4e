import { t } from 'tap'
import { openPeer, refusedUpgrade, type Query } from '../../fixtures/forward-setup.ts'
import { postgres } from '../../helpers/backends.ts'
import { rawExchange, request, type RawOptions } from '../../helpers/http.ts'
import { addProvider, eventIds, startHooks, type Fields } from '../../helpers/hooks.ts'

const QUERY: Query = { name: 'guards', target: 'http://localhost:3000/hook' }
const HANDSHAKE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
}

/** A problem ends here; other answers with their connection. */
const WHOLE: RawOptions = { until: (text) => text.endsWith('}') }

/** A request as bytes: Node's client takes an upgrade for itself. */
function head(line: string, headers: Fields) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n`
}

t.test('who may not have the WebSocket', async (t) => {
  const { base, env } = await startHooks(t, postgres, {
    HOOKS_BASE_URL: 'https://hooks.example',
    HOOKS_MAX_BODY: '1024',
  })
  const { host, port } = new URL(base)
  const path = `/relay?${new URLSearchParams(QUERY).toString()}`
  const at = (line: string, headers: Fields = {}) => head(line, { Host: host, ...headers })
  const exchange = (content: string | readonly string[], options?: RawOptions) =>
    rawExchange(Number(port), content, options)
  const raw = async (line: string, headers: Fields) =>
    (await exchange(at(line, headers), WHOLE)).text
  const upgrade = at(`GET ${path}`, HANDSHAKE)

  await t.test('another Host and other sites', async (t) => {
    const Origin = 'https://evil.example'
    const foreign: readonly (readonly [string, Fields])[] = [
      ['another Host', { Host: 'evil.example' }],
      ['cross-site', { 'Sec-Fetch-Site': 'cross-site' }],
      ['another origin', { Origin }],
      ['a same-origin lie', { 'Sec-Fetch-Site': 'same-origin', Origin }],
    ]
    for (const [name, headers] of foreign) {
      const { status, headers: answered, text } = await refusedUpgrade(base, QUERY, headers)
      t.equal(status, 403, name)
      t.match(answered, {
        'content-type': 'application/problem+json',
        'x-content-type-options': 'nosniff',
        'x-request-id': /./,
        connection: 'close',
      })
      const problem = { type: 'about:blank', title: 'Forbidden', status: 403, instance: '/relay' }
      t.match(JSON.parse(text), problem, name)
      const page = await raw('GET /log', { ...HANDSHAKE, ...headers })
      t.match(page, /^HTTP\/1\.1 403 /, `${name}: a page`)
    }
  })

  await t.test('requests that are none for a WebSocket', async (t) => {
    const plain = await request(base + path)
    t.match(plain, { status: 426, headers: { upgrade: 'websocket' } })
    t.match(plain.json(), { title: 'Upgrade Required', status: 426, instance: '/relay' })
    t.equal((await request(base + path, { method: 'HEAD' })).status, 426)
    const posted = await request(base + path, { method: 'POST', body: '' })
    t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
    const old = await raw(`GET ${path}`, { ...HANDSHAKE, 'Sec-WebSocket-Version': '8' })
    t.match(old, /^HTTP\/1\.1 426 .*\r\nsec-websocket-version: 13\r\n/s)
    for (const [name, value] of [
      ['Key', ''],
      ['Key', 'short'],
      ['Protocol', ''],
      ['Protocol', 'a,,b'],
      ['Protocol', 'x, x'],
    ] as const) {
      const answer = await raw(`GET ${path}`, { ...HANDSHAKE, [`Sec-WebSocket-${name}`]: value })
      t.match(answer, /^HTTP\/1\.1 400 .*"status":400/s, `${name}: "${value}"`)
    }
    t.match(await raw('GET /nowhere', HANDSHAKE), /^HTTP\/1\.1 404 .*"status":404/s)
  })

  await t.test('what it is asked for badly', async (t) => {
    const { name = '', target = '' } = QUERY
    const bad: readonly (readonly [Query, RegExp])[] = [
      [{ target }, /name must have 1 to 200 characters/],
      [{ name: 'x'.repeat(201), target }, /name/],
      [{ name: 'a\nb', target }, /name/],
      [{ name }, /target must be an http/],
      [{ name, target: 'ftp://localhost/' }, /target/],
      [{ name, target: 'http://me:pass@localhost/' }, /target/],
      [{ name, target: 'exec:' }, /target must be an http.*, or exec:NAME/],
      [{ name, target, coalesce: 'newest' }, /coalesce must be true or false/],
      [{ name, target, since: 'yesterday' }, /since must be the id of an event/],
      [{ name, target, json: 'data.object' }, /json must be path=value/],
      [{ name, target, event_type: 'invoice.*' }, /event_type must be a whole type/],
      [{ name, target, text: 'x'.repeat(501) }, /text may have 500 characters at most/],
    ]
    for (const [query, detail] of bad) {
      const { status, text } = await refusedUpgrade(base, query)
      t.match({ status, problem: JSON.parse(text) }, { status: 400, problem: { detail } })
    }
  })
  const known = await postgres.query(env, 'select name from hooks.forwarders')
  t.same([...known], [], 'nobody who was refused has left a name')

  await t.test('programs, and pages of ours, may', async (t) => {
    const peer = await openPeer(t, base, QUERY)
    t.match(await peer.next(), { type: 'ready', name: 'guards', position: 0, known: false })
    const own = { ...HANDSHAKE, Origin: `http://${host}`, 'Sec-Fetch-Site': 'same-origin' }
    const { text } = await exchange(at(`GET ${path}`, own), { until: (text) => text !== '' })
    t.match(text, /^HTTP\/1\.1 101 .*\r\nx-request-id: /s)
    await t.rejects(openPeer(t, base, QUERY, ['gatehouse-relay-9']), /subprotocol/)
  })

  await t.test('nor behind a request that has no answer yet', async (t) => {
    const goesOn = async (line: string) => {
      const before = at(line)
      for (const content of [before + upgrade, [before, upgrade]]) {
        const until = (text: string) => /HTTP\/1\.1 426 [^]*\}$/.test(text)
        const { text } = await exchange(content, { until, timeoutMs: 1_000 })
        t.notMatch(text, 'HTTP/1.1 500', line)
      }
    }
    // At once: most of them are ended by the time limit.
    await Promise.all(['GET /log', 'GET /events', `GET ${path}`].map(goesOn))
    t.equal((await request(`${base}/healthz`)).status, 200, 'the program goes on')
    const { text } = await exchange(at('GET /healthz') + upgrade)
    t.match(text, /HTTP\/1\.1 200 [^]*HTTP\/1\.1 426 [^]*\r\nconnection: [^\r]*close\r\n/i)
  })

  await t.test('elsewhere an upgrade is not heard', async (t) => {
    t.match(
      await raw('GET /log', { ...HANDSHAKE, Connection: 'Upgrade, close' }),
      /^HTTP\/1\.1 200 /,
    )
    await addProvider(base, 'lan', { open: true })
    // What curl --http2 sends to a server that it does not know yet.
    const line = at('POST /webhooks/generic/lan', {
      Connection: 'Upgrade, HTTP2-Settings, close',
      Upgrade: 'h2c',
      'HTTP2-Settings': 'AAMAAABk',
      'Content-Length': '7',
    })
    const { text } = await exchange([line, '{"a":1}'])
    t.match(text, /^HTTP\/1\.1 202 /)
    t.equal((await eventIds(base)).length, 1, 'its body was read')
  })

  await t.test('nor behind a request that is answered in the middle of a packet', async (t) => {
    await addProvider(base, 'before', { open: true })
    const with0 = { 'Content-Length': '0' }
    const with9 = { 'Content-Length': '9' }
    const continued = { ...with9, Expect: '100-continue' }
    const receiver = 'POST /webhooks/generic/before'
    const json = '{"a":"b"}'
    const chunks = `9\r\n${json}\r\n0\r\n\r\n`
    const large = 'x'.repeat(2048)
    const firsts: readonly (readonly [number, string])[] = [
      [400, head('GET /healthz', {})],
      [400, at('POST /', { 'Transfer-Encoding': 'gzip, chunked' }) + chunks],
      [404, at('POST /nowhere', with9) + json],
      [404, at('GET /nowhere', { ...with0, Expect: 'something' })],
      [405, at('PUT /log', with9) + json],
      [426, at(`GET ${path}`, with0)],
      [400, at(`GET ${path}`, { ...HANDSHAKE, ...with9 }) + json],
      [200, at('GET /healthz', with0)],
      [200, `GET /healthz HTTP/1.0\r\nHost: ${host}\r\nConnection: keep-alive\r\n\r\n`],
      [202, at(receiver, with9) + json],
      [202, at(receiver, continued) + json],
      [413, at(receiver, { ...continued, 'Content-Length': '2048' }) + large],
      [413, at(receiver, { 'Transfer-Encoding': 'chunked' }) + `800\r\n${large}\r\n0\r\n\r\n`],
    ]
    const isClosed = async ([status, first]: readonly [number, string]) => {
      const answered = new RegExp(`^(HTTP/1\\.1 100 Continue\r\n\r\n)?HTTP/1\\.[01] ${status} `)
      for (const before of [first, at('GET /healthz') + first]) {
        const { text, closed } = await exchange(before + upgrade)
        t.ok(closed, `${before}: the connection is closed`)
        if (before === first) t.match(text, answered, before)
        t.notMatch(text, /HTTP\/1\.1 (101|500) /, before)
      }
      // What is left of a body that was refused comes in one packet with what is behind it.
      const pieces = [first.slice(0, -2), first.slice(-2) + upgrade]
      const { text } = await exchange(pieces, { timeoutMs: 1_000 })
      t.notMatch(text, 'HTTP/1.1 500', first)
      t.equal((await request(`${base}/healthz`)).status, 200, `${first}: the program goes on`)
    }
    await Promise.all(firsts.map(isClosed))
  })
})
