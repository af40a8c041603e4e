import { t } from 'tap'
import { parse } from 'yaml'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { settingFor } from './proxies.ts'

// Caddy and nginx are real: proxies.test.ts. These two are not in Debian: here their settings are read as their
// documentation and sources have it.

const ADDRESSES = {
  hooks: 'http://127.0.0.1:9180',
  links: 'http://127.0.0.1:9181',
  ops: 'http://127.0.0.1:9182',
}

t.test('Tailscale: a port for each service, and Funnel for the receivers alone', async (t) => {
  const name = 'https://gatehouse.tail1234.ts.net'
  const urls = `--hooks-base-url ${name}:8443 --links-base-url ${name} --ops-base-url ${name}:9443`
  const setting = await settingFor(t, ADDRESSES, `--proxy tailscale ${urls}`)
  t.same(setting.match(/^\w.*$/gm), [
    'tailscale serve --bg --https=443 http://127.0.0.1:9181',
    'tailscale serve --bg --https=8443 http://127.0.0.1:9180',
    'tailscale serve --bg --https=9443 http://127.0.0.1:9182',
    'tailscale funnel --bg --https=10000 --set-path=/webhooks http://127.0.0.1:9180/webhooks',
  ])
})

/** A rule of cloudflared. It looks at the rule itself: `access` at the top of the file counts for nothing. */
type Rule = {
  hostname?: string
  path?: string
  service: string
  originRequest?: { access?: { required?: boolean } }
}

const HEADER = 'Cf-Access-Authenticated-User-Email'
const FORGED = { [HEADER]: 'boss@example.com' }
/** They begin as open paths do, and would lead to a page if somebody resolved them. */
const DETOURS = ['/webhooks/../log', '/webhooks/%2e%2e/log', '/mcp/../log']

t.test('Cloudflare Tunnel: nobody comes to a page without a token of Access', async (t) => {
  const urls =
    '--hooks-base-url https://hooks.example.org --links-base-url https://go.example.org --ops-base-url https://ops.example.org'
  const setting = await settingFor(t, ADDRESSES, `--proxy cloudflare ${urls}`)
  const { ingress }: { ingress: readonly Rule[] } = parse(setting)
  /** Where the first rule for an address leads, and whether it demands a token. */
  function ruleOf(host: string, path: string) {
    const rule = ingress.find(({ hostname = host, path: pattern = '' }) => {
      return hostname === host && new RegExp(pattern).test(decodeURI(path))
    })
    const isOpen = rule?.originRequest?.access?.required !== true
    return [rule?.service, isOpen ? 'open' : 'token']
  }
  for (const [service, host, open, guarded] of [
    ['hooks', 'hooks', '/webhooks/x /mcp/x /healthz', '/ /log /events /metrics /healthzx'],
    ['links', 'go', '/api/v1/links /mcp/x /healthz', '/ /-/ /docs /healthz/x'],
    ['ops', 'ops', '/api/v1/webhook /v1/models /beat/x /healthz', '/ /api/v1/sessions /v1x'],
  ] as const) {
    for (const [paths, needs] of [
      [open, 'open'],
      [guarded, 'token'],
    ] as const) {
      for (const path of paths.split(' ')) {
        const rule = ruleOf(`${host}.example.org`, path)
        t.same(rule, [ADDRESSES[service], needs], `${host} ${path}`)
      }
    }
  }
  t.same(ruleOf('other.example.org', '/'), ['http_status:404', 'open'], 'a name of nobody')

  const { hooks } = await startServer(t, {
    services: ['hooks'],
    env: {
      ...(await postgres.env(t)),
      HOOKS_BASE_URL: 'https://hooks.example.org',
      GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
      GATEHOUSE_USER_HEADER: HEADER,
    },
  })
  const ask = async (path: string) => {
    const headers = { Host: 'hooks.example.org', 'X-Forwarded-For': '203.0.113.9', ...FORGED }
    return (await request(`${hooks}/`, { path, headers })).status
  }
  t.equal(await ask('/log'), 200, 'nothing removes a name that a visitor sends')
  for (const path of DETOURS) {
    t.match(ruleOf('hooks.example.org', path), [ADDRESSES.hooks, 'open'])
    t.not(await ask(path), 200, `no way in by ${path}`)
  }
})
