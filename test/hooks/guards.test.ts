import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import type { RequestOptions, Response } from '../helpers/http.ts'
import { rawExchange } from '../helpers/raw-http.ts'
import {
  addProvider,
  deliver,
  FORM_TYPE,
  post,
  shown,
  startHooks,
} from '../helpers/signing-setup.ts'
import type { Ack } from '../helpers/signing-setup.ts'

const [, postgres] = backends
const PAGES = [
  '/',
  '/log',
  '/log/1',
  '/log/1/payload',
  '/providers',
  '/settings',
  '/events',
  '/metrics',
]

/** Posts the settings form: what must not change from another site. */
function changeRetry(
  base: string,
  retry: number,
  headers: RequestOptions['headers'] = {},
): Promise<Response> {
  const body = `sse_retry_ms=${retry}`
  return request(`${base}/settings`, {
    method: 'POST',
    headers: { ...FORM_TYPE, ...headers },
    body,
  })
}

async function retryOf(base: string): Promise<number> {
  const { text } = await request(`${base}/settings`)
  const input = /<input[^>]*name="sse_retry_ms"[^>]*>/.exec(text)?.[0] ?? ''
  return Number(/value="(\d+)"/.exec(input)?.[1])
}

function refused(t: Test, answer: Response, detail: RegExp, what: string): void {
  t.equal(answer.status, 403, what)
  t.equal(answer.headers['content-type'], 'application/problem+json', what)
  t.match(answer.json(), { type: 'about:blank', title: 'Forbidden', status: 403, detail }, what)
}

t.test('a public address that is an IPv6 literal', async (t) => {
  const { base } = await startHooks(t, postgres, { HOOKS_BASE_URL: 'http://[2001:DB8::7]:8080' })
  for (const [name, status] of [
    ['[2001:db8::7]:8080', 200],
    ['[2001:db8::8]:8080', 403],
  ] as const) {
    t.equal((await request(`${base}/log`, { headers: { Host: name } })).status, status, name)
  }
})

t.test('guards of a listener on loopback', async (t: Test) => {
  const { base } = await startHooks(t, postgres, { HOOKS_BASE_URL: 'https://Hooks.example:8443' })
  const { port, host } = new URL(base)
  await addProvider(base, 'lan', { open: true })
  t.equal((await deliver(base, 'chat', '{}')).json<Ack>().id, 1)

  await t.test('pages answer to our own names only', async (t) => {
    const foreign = [
      'evil.example',
      `evil.example:${port}`,
      '192.0.2.1',
      'localhost.evil.example',
      '',
    ]
    const spoofed = ['127.0.0.1.evil.example', 'hooks.example.evil', '0.0.0.0', '[::2]']
    for (const name of [...foreign, ...spoofed]) {
      for (const path of PAGES) {
        const answer = await request(base + path, { headers: { Host: name } })
        refused(t, answer, /Host/, `GET ${path} of "${name}"`)
      }
    }
    const own = [host, '127.0.0.1', `localhost:${port}`, 'LOCALHOST', '[::1]:1', '127.9.9.9']
    for (const name of [...own, 'hooks.example', 'HOOKS.example:8443']) {
      const answer = await request(`${base}/log`, { headers: { Host: name } })
      t.equal(answer.status, 200, `"${name}"`)
    }
    const none = await rawExchange(Number(port), 'GET /log HTTP/1.0\r\n\r\n')
    t.match(none.text, /^HTTP\/1\.1 403 /, 'no Host at all')
  })

  await t.test('receivers and the probe answer to any name', async (t) => {
    const headers = { Host: 'evil.example' }
    t.equal((await request(`${base}/healthz`, { headers })).status, 200)
    t.equal((await post(base, 'generic/lan', '{}', headers)).status, 202)
    t.equal((await deliver(base, 'code_host', '{}', headers)).status, 202)
    const cross = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example', ...headers }
    t.equal((await post(base, 'generic/lan', '{}', cross)).status, 202)
  })

  await t.test('a change of state from a foreign name is refused', async (t) => {
    const before = await retryOf(base)
    refused(t, await changeRetry(base, 999, { Host: 'evil.example' }), /Host/, 'settings')
    t.equal(await retryOf(base), before)
  })

  await t.test('a change of state from another site is refused', async (t) => {
    const before = await retryOf(base)
    const own = `http://${host}`
    const foreign: Record<string, Record<string, string>> = {
      'cross-site': { 'Sec-Fetch-Site': 'cross-site' },
      'same-site': { 'Sec-Fetch-Site': 'same-site' },
      'an unknown relation': { 'Sec-Fetch-Site': 'same-origin, none' },
      'cross-site with our origin': { 'Sec-Fetch-Site': 'cross-site', Origin: own },
      'another origin': { Origin: 'https://evil.example' },
      'another port': { Origin: `http://127.0.0.1:${Number(port) + 1}` },
      'another name of ours': { Origin: `http://localhost:${port}` },
      'an opaque origin': { Origin: 'null' },
      'no origin': { Origin: '' },
      nonsense: { Origin: 'nonsense' },
      'our origin as a user name': { Origin: `http://${host}@evil.example` },
    }
    for (const [name, headers] of Object.entries(foreign)) {
      refused(t, await changeRetry(base, 999, headers), /another site/, name)
      for (const path of [
        '/providers',
        '/providers/chat/enabled',
        '/providers/generic%3Alan/remove',
      ]) {
        const body = 'name=intruder&trust_mode=token&enabled=false'
        const all = { ...FORM_TYPE, ...headers }
        const answer = await request(base + path, { method: 'POST', headers: all, body })
        refused(t, answer, /another site/, `${name}: ${path}`)
      }
    }
    t.equal(await retryOf(base), before, 'the setting is as it was')
    t.notMatch((await request(`${base}/providers`)).text, /intruder/)
    t.equal((await deliver(base, 'chat', '{"on":1}')).status, 202, 'chat is enabled')
    t.equal((await post(base, 'generic/lan', '{}')).status, 202, 'lan is there')
  })

  await t.test('our own pages and programs may change it', async (t) => {
    const own: Record<string, Record<string, string>> = {
      'same-origin': { 'Sec-Fetch-Site': 'same-origin', Origin: `http://${host}` },
      'the address bar': { 'Sec-Fetch-Site': 'none' },
      'our origin': { Origin: `http://${host}` },
      'behind a proxy': { Origin: 'https://hooks.example:8443', Host: 'hooks.example:8443' },
      'a program': {},
    }
    let retry = 1_000
    for (const [name, headers] of Object.entries(own)) {
      retry += 1
      t.equal((await changeRetry(base, retry, headers)).status, 200, name)
      t.equal(await retryOf(base), retry, name)
    }
    // Reading is no change: a link from another site works.
    const link = { 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' }
    t.equal((await request(`${base}/log`, { headers: link })).status, 200)
  })

  await t.test('every answer carries its protective headers', async (t) => {
    const ids = new Set<string>()
    const answers = [
      ...(await Promise.all(PAGES.map((path) => request(base + path, { method: 'HEAD' })))),
      await request(`${base}/`),
      await request(`${base}/log/999999`, { headers: { Accept: 'text/html' } }),
      await request(`${base}/nothing`),
      await request(`${base}/healthz`),
      await request(`${base}/log`, { headers: { Host: 'evil.example' } }),
      await request(`${base}/webhooks/chat`),
      await post(base, 'chat', '{}'),
      await post(base, 'generic/lan', '{}'),
      await changeRetry(base, 1_500),
      await changeRetry(base, 1),
    ]
    for (const { headers, status } of answers) {
      t.equal(headers['x-content-type-options'], 'nosniff', `${status}`)
      ids.add(String(headers['x-request-id']))
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
    t.equal(ids.size, answers.length, 'an id each')
    t.notOk(ids.has('undefined'))
    const missing = answers.find(({ status }) => status === 404)
    t.match(missing?.headers['content-type'], /^text\/html/, 'a page for a person')
  })

  await t.test('X-Forwarded-For of an untrusted peer is ignored', async (t) => {
    const headers = { 'X-Forwarded-For': '203.0.113.7' }
    const { id } = (await post(base, 'generic/lan', '{}', headers)).json<Ack>()
    t.equal((await shown(base, id)).facts['Source address'], '127.0.0.1')
  })
})
