import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { createSender } from '../helpers/deliveries.ts'
import { request, type RequestOptions } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import { startServer } from '../helpers/server.ts'
import { ACCESS_TOKEN, startCloudflared, startTailscale, type Visitor } from './imitations.ts'
import { settingFor } from './proxies.ts'

// Caddy and nginx are real: proxies.test.ts. These two are not in Debian.

const [, postgres] = backends
const EMAIL = 'ann@example.com'

t.test('Tailscale Serve names people, and a visitor can name nobody', async (t) => {
  const name = 'gatehouse.tail1234.ts.net'
  const bases = {
    HOOKS_BASE_URL: `https://${name}:8443`,
    LINKS_BASE_URL: `https://${name}`,
    OPS_BASE_URL: `https://${name}:8444`,
  }
  const sender = createSender()
  const env = {
    ...{ ...(await postgres.env(t)), ...sender.env, ...bases },
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
    GATEHOUSE_USER_HEADER: 'Tailscale-User-Login',
  }
  const server = await startServer(t, { env })
  const flags = Object.entries(bases).flatMap(([variable, url]) => [
    `--${variable.toLowerCase().replaceAll('_', '-')}`,
    url,
  ])
  const setting = await settingFor(t, server, [...flags, '--proxy', 'tailscale'])
  let visitor: Visitor = { login: EMAIL }
  const start = (port: number) => startTailscale(t, setting, port, () => visitor)
  const [links, hooks, ops, funnel] = [
    await start(443),
    await start(8443),
    await start(8444),
    await start(10_000),
  ]
  const ask = (base: string, path: string, options: RequestOptions = {}) =>
    request(`${base}${path}`, { ...options, headers: { Host: name, ...options.headers } })

  const forged = { headers: { 'Tailscale-User-Login': 'boss@example.com' } }
  const page = await ask(links, '/-/', forged)
  t.equal(page.status, 200)
  t.match(page.text, EMAIL, 'the one whose device it is')
  t.notMatch(page.text, 'boss@example.com')
  t.equal((await ask(hooks, '/log')).status, 200)
  t.equal((await ask(ops, '/')).status, 200)

  const { api } = await linksServer(server, env).user('owner')
  await makeLink({ api }, 'secret', { visibility: 'secure' })
  for (const who of ['tagged', 'funnel'] as const) {
    visitor = who
    t.equal((await ask(links, '/secret', forged)).status, 403, `${who} has no name`)
  }
  visitor = 'funnel'
  const delivery = await sender.delivery()
  const sent = await ask(funnel, '/webhooks/code_host', { ...delivery, method: 'POST' })
  t.equal(sent.status, 202, 'providers reach the receivers')
  for (const path of ['/log', '/', '/webhooksx', '/events']) {
    t.equal((await ask(funnel, path)).status, 404, `and nothing else: ${path}`)
  }
})

t.test('Cloudflare Tunnel: nobody comes in without a token of Access', async (t) => {
  const sender = createSender()
  const bases = {
    HOOKS_BASE_URL: 'https://hooks.example.com',
    LINKS_BASE_URL: 'https://go.example.com',
    OPS_BASE_URL: 'https://ops.example.com',
  }
  const env = {
    ...{ ...(await postgres.env(t)), ...sender.env, ...bases },
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
    GATEHOUSE_USER_HEADER: 'Cf-Access-Authenticated-User-Email',
  }
  const server = await startServer(t, { env })
  const flags = Object.entries(bases).flatMap(([variable, url]) => [
    `--${variable.toLowerCase().replaceAll('_', '-')}`,
    url,
  ])
  const setting = await settingFor(t, server, [...flags, '--proxy', 'cloudflare'])
  const tunnel = await startCloudflared(t, setting, EMAIL)
  const ask = (host: string, path: string, options: RequestOptions = {}) =>
    request(`${tunnel}/`, {
      ...options,
      path,
      headers: { Host: `${host}.example.com`, ...options.headers },
    })
  const forged = { 'Cf-Access-Authenticated-User-Email': 'boss@example.com' }
  const signedIn = { Cookie: `CF_Authorization=${ACCESS_TOKEN}` }

  const pages = ['hooks /log', 'hooks /events', 'hooks /metrics', 'go /-/', 'go /docs', 'ops /']
  for (const place of pages) {
    const [host = '', path = ''] = place.split(' ')
    t.equal((await ask(host, path, { headers: forged })).status, 403, place)
  }
  for (const path of ['/webhooks/../log', '/webhooks/%2e%2e/log', '/mcp/../log', '/healthzx']) {
    t.not((await ask('hooks', path, { headers: forged })).status, 200, `no way in by ${path}`)
  }
  t.equal((await ask('other', '/')).status, 404, 'a name of nobody')

  t.equal((await ask('hooks', '/log', { headers: signedIn })).status, 200)
  const page = await ask('go', '/-/', { headers: { ...forged, ...signedIn } })
  t.match(page, { status: 200, text: EMAIL })
  t.notMatch(page.text, 'boss@example.com')

  const delivery = await sender.delivery()
  const sent = await ask('hooks', '/webhooks/code_host', { ...delivery, method: 'POST' })
  t.equal(sent.status, 202)
  for (const host of ['hooks', 'go', 'ops']) t.equal((await ask(host, '/healthz')).status, 200)
  t.equal(
    (await ask('ops', '/beat/unknown', { method: 'POST' })).status,
    404,
    'a job has its token',
  )
  const me = await ask('go', '/api/v1/users/me', { headers: forged })
  t.equal(me.status, 401, 'a name alone is no token')
})
