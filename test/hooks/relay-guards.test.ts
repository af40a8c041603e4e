import { t } from 'tap'
import type { Test } from 'tap'
import { openPeer, refusedUpgrade } from '../fixtures/forward-setup.ts'
import type { Query } from '../fixtures/forward-setup.ts'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import type { RawOptions } from '../helpers/raw-http.ts'
import { addProvider, eventIds, startHooks } from '../helpers/signing-setup.ts'

const [, postgres] = backends
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
function head(line: string, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `${line} HTTP/1.1\r\n${lines.join('')}\r\n`
}

t.test('who may not have the WebSocket', async (t: Test) => {
  const { base, env } = await startHooks(t, postgres, { HOOKS_BASE_URL: 'https://hooks.example' })
  const { host, port } = new URL(base)
  const path = `/relay?${new URLSearchParams(QUERY).toString()}`
  const raw = async (line: string, headers: Readonly<Record<string, string>>): Promise<string> =>
    (await rawExchange(Number(port), head(line, { Host: host, ...headers }), WHOLE)).text

  await t.test('another Host and other sites', async (t) => {
    const foreign: Record<string, Record<string, string>> = {
      'another Host': { Host: 'evil.example' },
      'cross-site': { 'Sec-Fetch-Site': 'cross-site' },
      'same-site': { 'Sec-Fetch-Site': 'same-site' },
      'another origin': { Origin: 'https://evil.example' },
      'another port': { Origin: `http://127.0.0.1:${Number(port) + 1}` },
      'an opaque origin': { Origin: 'null' },
      'a same-origin lie': { 'Sec-Fetch-Site': 'same-origin', Origin: 'https://evil.example' },
    }
    for (const [name, headers] of Object.entries(foreign)) {
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
      for (const page of ['/', '/log', '/events']) {
        const answer = await raw(`GET ${page}`, { ...HANDSHAKE, ...headers })
        t.match(answer, /^HTTP\/1\.1 403 /, `${name}: ${page}`)
      }
    }
  })

  await t.test('requests that are none for a WebSocket', async (t) => {
    const plain = await request(base + path)
    t.match(plain, { status: 426, headers: { upgrade: 'websocket' } })
    t.match(plain.json(), { title: 'Upgrade Required', status: 426, instance: '/relay' })
    t.equal((await request(base + path, { method: 'HEAD' })).status, 426)
    const last = head(`GET ${path}`, { Host: host, Connection: 'close' })
    const ended = await rawExchange(Number(port), last)
    t.match(ended.text, /^HTTP\/1\.1 426 .*\r\nconnection: upgrade, close\r\n/s)
    t.ok(ended.closed, 'and the connection is closed for who asked for that')
    const posted = await request(base + path, { method: 'POST', body: '' })
    t.match(posted, { status: 405, headers: { allow: 'GET, HEAD' } })
    const old = await raw(`GET ${path}`, { ...HANDSHAKE, 'Sec-WebSocket-Version': '8' })
    t.match(old, /^HTTP\/1\.1 426 .*\r\nsec-websocket-version: 13\r\n/s)
    for (const name of ['Sec-WebSocket-Key', 'Sec-WebSocket-Protocol']) {
      for (const value of ['', 'a,,b', 'short', 'x, x']) {
        if (name === 'Sec-WebSocket-Protocol' && value === 'short') continue
        const answer = await raw(`GET ${path}`, { ...HANDSHAKE, [name]: value })
        t.match(answer, /^HTTP\/1\.1 400 .*"status":400/s, `${name}: "${value}"`)
      }
    }
    t.match(await raw('GET /nowhere', HANDSHAKE), /^HTTP\/1\.1 404 .*"status":404/s)
  })

  await t.test('what it is asked for badly', async (t) => {
    const { name = '', target = '' } = QUERY
    const bad: readonly (readonly [Query, RegExp])[] = [
      [{ target }, /name must have 1 to 200 characters/],
      [{ name: '', target }, /name/],
      [{ name: 'x'.repeat(201), target }, /name/],
      [{ name: 'a\nb', target }, /name/],
      [{ name }, /target must be an http/],
      [{ name, target: 'localhost:3000' }, /target/],
      [{ name, target: 'ftp://localhost/' }, /target/],
      [{ name, target: 'http://me:pass@localhost/' }, /target/],
      [{ name, target, since: 'yesterday' }, /since must be the id of an event/],
      [{ name, target, since: '-1' }, /since/],
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
    const wanted = head(`GET ${path}`, { Host: host, ...own })
    const { text } = await rawExchange(Number(port), wanted, { until: (text) => text !== '' })
    t.match(text, /^HTTP\/1\.1 101 .*\r\nx-request-id: /s)
    await t.rejects(openPeer(t, base, QUERY, ['gatehouse-relay-9']), /subprotocol/)
  })

  await t.test('nor behind a request that has no answer yet', async (t) => {
    const wanted = head(`GET ${path}`, { Host: host, ...HANDSHAKE })
    const others = ['GET /healthz', 'GET /log', 'GET /nowhere', 'GET /events', `GET ${path}`]
    for (const line of others) {
      const before = head(line, { Host: host })
      for (const content of [before + wanted, [before, wanted], before + before + wanted]) {
        const until = (text: string): boolean => /HTTP\/1\.1 426 [^]*\}$/.test(text)
        const { text } = await rawExchange(Number(port), content, { until, timeoutMs: 1_000 })
        t.notMatch(text, 'HTTP/1.1 500', line)
        t.equal((await request(`${base}/healthz`)).status, 200, `${line}: the program goes on`)
      }
    }
    const health = head('GET /healthz', { Host: host })
    const { text } = await rawExchange(Number(port), health + wanted)
    t.match(text, /HTTP\/1\.1 200 [^]*HTTP\/1\.1 426 [^]*\r\nconnection: [^\r]*close\r\n/i)
  })

  await t.test('elsewhere an upgrade is not heard', async (t) => {
    t.match(
      await raw('GET /log', { ...HANDSHAKE, Connection: 'Upgrade, close' }),
      /^HTTP\/1\.1 200 /,
    )
    await addProvider(base, 'lan', { open: true })
    // What curl --http2 sends to a server that it does not know yet.
    const upgrade = { Connection: 'Upgrade, HTTP2-Settings, close', Upgrade: 'h2c' }
    const sent = { ...upgrade, 'HTTP2-Settings': 'AAMAAABk', 'Content-Length': '7' }
    const line = head('POST /webhooks/generic/lan', { Host: host, ...sent })
    const { text } = await rawExchange(Number(port), [line, '{"a":1}'])
    t.match(text, /^HTTP\/1\.1 202 /)
    t.equal((await eventIds(base)).length, 1, 'its body was read')
  })
})
