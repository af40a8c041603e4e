import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { createGuard } from '../../kernel/net/guard.ts'
import { parseBlocks } from '../../kernel/net/addresses.ts'
import { redactAddress } from '../../services/hooks/receive/rejections.ts'
import { postgres } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { allIn, rawExchange, request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { expectStatus, refuseAll, type Refusal } from '../helpers/refusals.ts'
import {
  accepted,
  FORM_TYPE,
  addProvider,
  deliver,
  post,
  postForm,
  shown,
  startHooks,
  type Ack,
  type Fields,
} from '../helpers/hooks.ts'

/** What a page of another site may not load. */
const PRIVATE = (
  '/ /status /log /log/1 /log/1/payload /log/export /providers /settings /audit ' +
  '/api/v1/events /api/v1/providers /api/v1/stats /api/v1/destinations'
).split(' ')
const PAGES = [...PRIVATE, '/events', '/metrics']

t.test('guards of a listener on loopback', async (t) => {
  const { base } = await startHooks(t, postgres, { HOOKS_BASE_URL: 'https://Hooks.example:8443' })
  const { port, host } = new URL(base)
  const changeRetry = (retry: number, headers: Fields = {}) =>
    postForm(base, '/settings', { sse_retry_ms: String(retry) }, headers)
  async function retryOf() {
    const { text } = await request(`${base}/settings`)
    return Number(/name="sse_retry_ms"[^>]*value="(\d+)"/.exec(text)?.[1])
  }
  await addProvider(base, 'lan', { open: true })
  t.equal(await accepted(deliver(base, 'chat', '{}')), 1)
  /** What a foreign page must not change. */
  const state = async () => {
    const { text } = await request(`${base}/providers`)
    const cards = allIn(text, /data-provider="([^"]+)"/g)
    const switches = allIn(text, /aria-checked="(\w+)"/g)
    return { retry: await retryOf(), cards, switches }
  }

  await t.test('pages answer to our own names only', async (t) => {
    const names = ['', `evil.example:${port}`, '0.0.0.0', '[::2]', 'hooks.example.evil']
    names.push('localhost.evil.example', '127.0.0.1.evil.example')
    const refused = (path: string, name: string): Refusal => {
      return [{ call: `GET ${path}`, headers: { Host: name } }, 403, /Host/]
    }
    await refuseAll(t, { service: 'hooks', base, state }, [
      ...names.map((name) => refused('/log', name)),
      ...PAGES.map((path) => refused(path, 'evil.example')),
    ])
    for (const name of ['LOCALHOST', '[::1]:1', '127.9.9.9', 'HOOKS.example:8443']) {
      await expectStatus(200, request(`${base}/log`, { headers: { Host: name } }), name)
    }
    const none = await rawExchange(Number(port), 'GET /log HTTP/1.0\r\n\r\n')
    t.match(none.text, /^HTTP\/1\.1 403 /, 'no Host at all')
  })

  await t.test('no page of another site loads one unseen', async (t) => {
    const loads: readonly Fields[] = [
      ...['image', 'iframe', 'script', 'empty', ''].map((dest) => ({ 'Sec-Fetch-Dest': dest })),
      { 'Sec-Fetch-Dest': 'image', 'Sec-Fetch-Site': 'same-site' },
      // A browser that loads a page ahead; nobody has followed a link.
      { 'Sec-Fetch-Dest': 'document', 'Sec-Purpose': 'prefetch;prerender' },
    ]
    const paths = [...PRIVATE, '/log?compare=1', '/log/1?compare=1', '/api/v1/events/1/payload']
    const refused = (path: string, load = loads[0]): Refusal => {
      const headers = { 'Sec-Fetch-Site': 'cross-site', ...load }
      return [{ call: `GET ${path}`, headers }, 403, /another site/]
    }
    await refuseAll(t, { service: 'hooks', base, state }, [
      ...loads.map((load) => refused('/log', load)),
      ...paths.map((path) => refused(path)),
    ])
    const link = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Dest': 'document' }
    const own = { 'Sec-Fetch-Site': 'same-origin', 'Sec-Fetch-Dest': 'image' }
    const ahead = { ...own, 'Sec-Fetch-Dest': 'document', 'Sec-Purpose': 'prefetch' }
    for (const headers of [link, own, ahead, {}]) {
      await expectStatus(200, request(`${base}/log`, { headers }))
    }
  })

  await t.test('receivers and the probe answer to any name', async () => {
    const headers = { Host: 'evil.example' }
    await expectStatus(200, request(`${base}/healthz`, { headers }))
    await expectStatus(202, deliver(base, 'code_host', '{}', headers))
    const cross = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example', ...headers }
    await expectStatus(202, post(base, 'generic/lan', '{}', cross))
  })

  await t.test('a change of state from another name or site is refused', async (t) => {
    const own = `http://${host}`
    const foreign: readonly Fields[] = [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'cross-site', Origin: own },
      { Origin: 'https://evil.example' },
      // Another port, another name of ours, and our own as a user name.
      { Origin: `http://127.0.0.1:${Number(port) + 1}` },
      { Origin: `http://localhost:${port}` },
      { Origin: `http://${host}@evil.example` },
      { Origin: 'null' },
      { Origin: '' },
    ]
    const body = 'name=intruder&trust_mode=token&enabled=false&sse_retry_ms=999'
    const changes = ['/settings', '/providers', '/providers/chat/enabled']
    const refused = (path: string, headers: Fields) => ({
      call: `POST ${path}`,
      headers: { ...FORM_TYPE, ...headers },
      body,
    })
    await refuseAll(t, { service: 'hooks', base, state }, [
      ...foreign.map((headers): Refusal => {
        return [refused('/settings', headers), 403, /another site/]
      }),
      ...changes.flatMap((path): readonly Refusal[] => [
        [refused(path, { Host: 'evil.example' }), 403, /Host/],
        [refused(path, { Origin: 'https://evil.example' }), 403, /another site/],
      ]),
    ])
  })

  await t.test('our own pages and programs may change it', async (t) => {
    const own: Record<string, Record<string, string>> = {
      'same-origin': { 'Sec-Fetch-Site': 'same-origin', Origin: `http://${host}` },
      'the address bar': { 'Sec-Fetch-Site': 'none' },
      'our origin': { Origin: `http://${host}` },
      'behind a proxy': { Origin: 'https://hooks.example:8443', Host: 'hooks.example:8443' },
      'a program': {},
    }
    for (const [name, headers] of Object.entries(own)) {
      await expectStatus(200, changeRetry(1_001, headers), name)
    }
    t.equal(await retryOf(), 1_001)
  })

  await t.test('every answer carries its protective headers', async (t) => {
    const answers = await Promise.all([
      ...PAGES.map((path) => request(base + path, { method: 'HEAD' })),
      request(`${base}/log/999999`, { headers: { Accept: 'text/html' } }),
      request(`${base}/log`, { headers: { Host: 'evil.example' } }),
      post(base, 'chat', '{}'),
      changeRetry(1_500),
      changeRetry(1),
    ])
    for (const { headers, status } of answers) {
      t.equal(headers['x-content-type-options'], 'nosniff', `${status}`)
      if (!/^text\/html/.test(headers['content-type'] ?? '')) continue
      const policy = String(headers['content-security-policy'])
      t.match(policy, /(^|; )default-src 'self'(;|$)/)
      t.match(policy, /(^|; )frame-ancestors 'none'(;|$)/)
      t.notMatch(policy, /unsafe|\*|data:|https?:/)
      t.equal(headers['referrer-policy'], 'same-origin')
      t.equal(headers['cross-origin-opener-policy'], 'same-origin')
    }
    const loadedBy = 'cross-origin-resource-policy'
    for (const path of [...PAGES, '/assets/app.css', '/log/999999', '/api/docs/explorer.js']) {
      const { headers } = await request(base + path, { method: 'HEAD' })
      t.equal(headers[loadedBy], 'same-origin', `${path} is for pages of this site`)
    }
    const open = [await request(`${base}/healthz`), await post(base, 'generic/lan', '{}')]
    for (const { headers } of open) t.equal(headers[loadedBy], undefined, 'probes and receivers')
  })
})

t.test('a trusted proxy names the source', async (t) => {
  const { base, server } = await startHooks(t, postgres, {
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32, 10.0.0.0/8,fd00::/8',
  })
  await addProvider(base, 'lan', { open: true })
  const source = async (forwarded: string | readonly string[], from?: string) => {
    const answer = await request(`${base}/webhooks/generic/lan`, {
      method: 'POST',
      headers: { 'X-Forwarded-For': forwarded },
      body: '{}',
      ...(from === undefined ? {} : { localAddress: from }),
    })
    return (await shown(base, answer.json<Ack>().id)).facts['Source address'] ?? ''
  }
  for (const [forwarded, expected] of [
    ['198.51.100.1, 203.0.113.7', '203.0.113.7'],
    ['203.0.113.7,fd00::5 , 10.1.2.3', '203.0.113.7'],
    [['198.51.100.1', '203.0.113.7'], '203.0.113.7'],
    ['10.9.9.9, 10.1.2.3', '10.9.9.9'],
    ['2001:db8::7', '2001:db8::7'],
    ['[2001:db8::7]:443', '2001:db8::7'],
    // No address ends the search.
    ['203.0.113.7, unknown', '127.0.0.1'],
  ] as const) {
    t.equal(await source(forwarded), expected, String(forwarded))
  }
  t.equal(await source('203.0.113.7', '127.0.0.2'), '127.0.0.2', 'a peer that is no trusted proxy')
  const headers = { 'X-Forwarded-For': '203.0.113.7' }
  await expectStatus(200, request(`${base}/log`, { headers }))
  t.match(server.logs().join('\n'), /"client":"203\.0\.113\.7"/)
})

t.test('an address beyond loopback needs a trusted proxy', async (t) => {
  const folder = join(await temporaryFolder(t), 'data')
  const env = { GATEHOUSE_DATA_DIR: folder, LINKS_ADDR: '127.0.0.1:0', HOOKS_ADDR: '0.0.0.0:0' }
  const ended = await runCli(['serve', 'links', 'hooks'], { env })
  const beyond = /^gatehouse: HOOKS_ADDR is beyond loopback: set GATEHOUSE_TRUSTED_PROXIES/m
  t.match(ended, { code: 1, stdout: '', stderr: beyond })
  t.notOk(existsSync(folder), 'nothing was written')
})

// A listener of a test is bound to loopback, where no peer is foreign: these are asked directly.

t.test('pages are for loopback peers and trusted proxies', async (t) => {
  const trustedProxies = parseBlocks(['10.0.0.0/8', 'fd00::/8'])
  const guard = createGuard({
    hosts: () => new Set(['hooks.example']),
    trustedProxies,
    userHeader: () => 'remote-email',
    groupsHeader: () => undefined,
  })
  const httpVersion = '1.1'
  const answer = (peer: string, host: string, method = 'GET') =>
    guard({ method, headers: { host }, httpVersion, peer })?.status
  for (const peer of ['127.255.0.9', '::1', '10.200.0.1', 'fd00::1']) {
    t.equal(answer(peer, 'hooks.example', 'POST'), undefined, peer)
    t.equal(answer(peer, 'evil.example'), 403, `${peer}, another Host`)
  }
  for (const peer of ['203.0.113.7', '128.0.0.1', '::2', 'fc00::1', '']) {
    t.equal(answer(peer, 'localhost'), 403, peer)
  }
})

t.test('a refused source is kept as its network', async (t) => {
  t.equal(redactAddress('203.0.113.7'), '203.0.113.0/24')
  t.equal(redactAddress('2001:db8:1:2:3:4:5:6'), '2001:db8:1::/48')
  t.equal(redactAddress('::1'), '::/48')
  t.equal(redactAddress('no address'), 'unknown')
})
