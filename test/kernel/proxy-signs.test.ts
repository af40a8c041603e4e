import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { rawExchange, request } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { addProvider, post, postForm } from '../helpers/hooks.ts'
import { startServer } from '../helpers/server.ts'

const REFUSED = /proxy that is not trusted .*GATEHOUSE_TRUSTED_PROXIES/

/** Headers that proxies set. */
const SIGNS: Readonly<Record<string, string>> = {
  'X-User': 'operator@localhost',
  'X-Groups': 'ops',
  'Remote-User': 'ann',
  'Remote-Groups': '',
  'X-Forwarded-For': '203.0.113.7',
  'X-Forwarded-Proto': 'https',
  'X-Real-IP': '127.0.0.1',
  Forwarded: 'for=127.0.0.1',
  Via: '1.1 cache',
  'CF-Ray': '230b030023ae2822-SJC',
  'CF-Connecting-IP': '203.0.113.7',
  'True-Client-IP': '203.0.113.7',
}

await t.test('a proxy that nobody trusts', async (t) => {
  const env = {
    ...(await postgres.env(t)),
    GATEHOUSE_USER_HEADER: 'X-User',
    GATEHOUSE_GROUPS_HEADER: 'X-Groups',
  }
  const server = await startServer(t, { env })
  const { hooks, links, ops } = server
  await addProvider(hooks, 'lan', { open: true })
  const owner = await linksServer(server, env).user('owner')
  await makeLink(owner, 'public')
  await makeLink(owner, 'kept', { visibility: 'secure' })

  const guarded: readonly (readonly [path: string, method: string])[] = [
    ...['/log', '/events', '/relay', '/metrics'].map((path) => [hooks + path, 'GET'] as const),
    ...['/settings', '/log/1/replay', '/mcp/agent'].map((path) => [hooks + path, 'POST'] as const),
    ...['/-/', '/api/docs/', '/metrics'].map((path) => [links + path, 'GET'] as const),
    [`${links}/-/new`, 'POST'],
    ...['/api/v1/sessions', '/sessions/1/stream'].map((path) => [ops + path, 'GET'] as const),
    [`${ops}/api/v1/config`, 'PUT'],
  ]

  await t.test('guarded routes refuse it and say what to set', async (t) => {
    const refused = async (url: string, method: string, headers: Record<string, string>) => {
      const answer = await request(url, { method, headers })
      t.match([answer.status, answer.text], [403, REFUSED], `${method} ${url}`)
    }
    for (const [name, value] of Object.entries(SIGNS)) {
      for (const base of [hooks, links, ops]) await refused(base, 'GET', { [name]: value })
    }
    for (const [url, method] of guarded) await refused(url, method, { Via: '1.1 cache' })
    for (const base of [hooks, links, ops]) {
      const page = await request(base, { headers: { Accept: 'text/html', Via: '1.1 cache' } })
      t.match(page.headers, { 'content-type': /^text\/html/ })
      const old = 'GET / HTTP/1.0\r\nHost: localhost\r\n\r\n'
      t.match((await rawExchange(Number(new URL(base).port), old)).text, REFUSED)
    }
    const local = await postForm(hooks, '/settings', { sse_retry_ms: '999' })
    t.equal(local.status, 200, 'without a sign it is somebody on this machine')
  })

  await t.test('on open routes it brings nobody', async (t) => {
    t.equal((await request(`${links}/kept`)).status, 302, 'the local operator is an admin')
    for (const [name, value] of Object.entries(SIGNS)) {
      const headers = { [name]: value }
      t.equal((await request(`${links}/public`, { headers })).status, 302, name)
      t.equal((await request(`${links}/kept`, { headers })).status, 403, name)
    }
    const proxied = { 'X-Forwarded-For': '203.0.113.7', 'X-User': 'operator@localhost' }
    const authorized = { ...proxied, Authorization: `Bearer ${owner.token}` }
    const me = await request(`${links}/api/v1/users/me`, { headers: authorized })
    t.match(me, { status: 200, text: owner.email })
    t.equal((await post(hooks, 'generic/lan', '{}', proxied)).status, 202)
    for (const url of [`${hooks}/healthz`, `${links}/healthz`, `${ops}/api/v1/health`])
      t.equal((await request(url, { headers: proxied })).status, 200, url)
    const port = Number(new URL(links).port)
    const old = await rawExchange(port, 'GET /kept HTTP/1.0\r\nHost: localhost\r\n\r\n')
    t.match(old.text, /^HTTP\/1\.1 403 /)
  })
})

await t.test('a proxy that is trusted, beside one that is not', async (t) => {
  const env = { ...(await postgres.env(t)), GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32' }
  const { hooks, ops } = await startServer(t, { services: ['hooks', 'ops'], env })
  for (const [name, value] of Object.entries(SIGNS).slice(2)) {
    const headers = { [name]: value }
    for (const url of [`${hooks}/log`, `${ops}/api/v1/sessions`]) {
      t.equal((await request(url, { headers })).status, 200, name)
      const other = await request(url, { headers, localAddress: '127.0.0.2' })
      t.match(other, { status: 403, text: REFUSED }, name)
    }
  }
  const direct = await request(`${hooks}/log`, { localAddress: '127.0.0.2' })
  t.equal(direct.status, 200, 'a program on this machine')
})
