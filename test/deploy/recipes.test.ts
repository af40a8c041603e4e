import { once } from 'node:events'
import { request as forward, createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends } from '../helpers/backends.ts'
import { createSender } from '../helpers/deliveries.ts'
import { request, type RequestOptions } from '../helpers/http.ts'
import { linksServer, makeLink } from '../helpers/links.ts'
import type { Owner } from '../helpers/owner.ts'
import { startServer } from '../helpers/server.ts'
import { settingFor } from './proxies.ts'

// Caddy and nginx are real: proxies.test.ts. These two are not in Debian: here is what they do as far as Gatehouse
// meets it, by their documentation and sources. Which address they lead to, and which headers they remove and set.

const [, postgres] = backends
const EMAIL = 'ann@example.com'

/** The public addresses of the services. */
type Bases = Readonly<Record<'HOOKS_BASE_URL' | 'LINKS_BASE_URL' | 'OPS_BASE_URL', string>>

/** A server behind such a proxy, and the setting that `gatehouse init` shows for it. */
async function startBehind(t: Test, proxy: string, header: string, bases: Bases) {
  const sender = createSender()
  const env = {
    ...(await postgres.env(t)),
    ...sender.env,
    ...bases,
    GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
    GATEHOUSE_USER_HEADER: header,
  }
  const server = await startServer(t, { env })
  const flags = Object.entries(bases).flatMap(([variable, url]) => [
    `--${variable.toLowerCase().replaceAll('_', '-')}`,
    url,
  ])
  const setting = await settingFor(t, server, [...flags, '--proxy', proxy])
  return { env, server, setting, delivery: await sender.delivery() }
}

t.test('Tailscale Serve names people, and a visitor can name nobody', async (t) => {
  const name = 'gatehouse.tail1234.ts.net'
  const behind = await startBehind(t, 'tailscale', 'Tailscale-User-Login', {
    HOOKS_BASE_URL: `https://${name}:8443`,
    LINKS_BASE_URL: `https://${name}`,
    OPS_BASE_URL: `https://${name}:8444`,
  })
  let visitor: Visitor = { login: EMAIL }
  const start = (port: number) => startTailscale(t, behind.setting, port, () => visitor)
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

  const { api } = await linksServer(behind.server, behind.env).user('owner')
  await makeLink({ api }, 'secret', { visibility: 'secure' })
  for (const who of ['tagged', 'funnel'] as const) {
    visitor = who
    t.equal((await ask(links, '/secret', forged)).status, 403, `${who} has no name`)
  }
  visitor = 'funnel'
  const sent = await ask(funnel, '/webhooks/code_host', { ...behind.delivery, method: 'POST' })
  t.equal(sent.status, 202, 'providers reach the receivers')
  for (const path of ['/log', '/', '/webhooksx', '/events']) {
    t.equal((await ask(funnel, path)).status, 404, `and nothing else: ${path}`)
  }
})

t.test('Cloudflare Tunnel: nobody comes in without a token of Access', async (t) => {
  const header = 'Cf-Access-Authenticated-User-Email'
  const behind = await startBehind(t, 'cloudflare', header, {
    HOOKS_BASE_URL: 'https://hooks.example.com',
    LINKS_BASE_URL: 'https://go.example.com',
    OPS_BASE_URL: 'https://ops.example.com',
  })
  const tunnel = await startCloudflared(t, behind.setting, EMAIL)
  const ask = (host: string, path: string, options: RequestOptions = {}) =>
    request(`${tunnel}/`, {
      ...options,
      path,
      headers: { Host: `${host}.example.com`, ...options.headers },
    })
  const forged = { [header]: 'boss@example.com' }
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

  const sent = await ask('hooks', '/webhooks/code_host', { ...behind.delivery, method: 'POST' })
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

/** Where a request goes, and with which headers of the proxy's own; undefined headers are removed. */
interface Passed {
  to: string
  path?: string
  headers: Readonly<Record<string, string | undefined>>
}

/** What a proxy does with a request: passes it on, or answers it with a status. */
type Pass = (request: {
  host: string
  path: string
  headers: IncomingHttpHeaders
}) => Passed | number

/** A proxy that passes requests on as `pass` says; gives where it listens. */
async function startProxy(t: Owner, pass: Pass): Promise<string> {
  const server = createServer((asked, response) => {
    const { method = '', url: path = '/', headers } = asked
    const passed = pass({ host: headers.host ?? '', path, headers })
    if (typeof passed === 'number') return void response.writeHead(passed).end()
    const all = Object.entries({ ...headers, ...passed.headers })
    const sent = Object.fromEntries(all.filter(([, value]) => value !== undefined))
    const to = new URL(passed.to)
    // Not as a URL, which would resolve `..`. Without `agent` the connection is the proxy's own.
    const options = {
      host: to.hostname,
      port: to.port,
      path: to.pathname.replace(/\/$/, '') + (passed.path ?? path),
      method,
      headers: sent,
      agent: false,
    }
    const out = forward(options, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers)
      answer.pipe(response)
    })
    out.on('error', () => response.writeHead(502).end())
    asked.pipe(out)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Who comes to Tailscale Serve: a person by a device, a device with a tag, or somebody from the internet by Funnel. */
type Visitor = { login: string } | 'tagged' | 'funnel'

const CLEARED = [
  'tailscale-user-login',
  'tailscale-user-name',
  'tailscale-user-profile-pic',
  'tailscale-funnel-request',
  'tailscale-headers-info',
]

/**
 * Tailscale Serve as its sources have it: it clears what a visitor sends, and names people, never devices with a
 * tag. `setting` has the commands; the port of the public address decides which of them counts.
 */
function startTailscale(
  t: Owner,
  setting: string,
  port: number,
  visitor: () => Visitor,
): Promise<string> {
  const line = new RegExp(`^tailscale (?:serve|funnel) --bg --https=${port} (.*)$`, 'm')
  const [, rest = ''] = line.exec(setting) ?? []
  const mount = /--set-path=(\S+) /.exec(rest)?.[1] ?? ''
  const target = rest.split(' ').at(-1) ?? ''
  return startProxy(t, ({ host, path }) => {
    if (mount !== '' && path !== mount && !path.startsWith(`${mount}/`)) return 404
    const who = visitor()
    const named =
      typeof who === 'string'
        ? {}
        : { 'tailscale-user-login': who.login, 'tailscale-user-name': 'Ann' }
    return {
      to: target,
      path: path.slice(mount.length),
      headers: {
        ...Object.fromEntries(CLEARED.map((name) => [name, undefined])),
        'x-forwarded-host': host,
        'x-forwarded-proto': 'https',
        'x-forwarded-for': '100.64.0.7',
        ...(who === 'funnel' ? { 'tailscale-funnel-request': '?1' } : named),
      },
    }
  })
}

interface Rule {
  hostname: string | undefined
  path: RegExp | undefined
  service: string
  /** cloudflared looks at the rule itself: `access` at the top of the file counts for nothing. */
  needsToken: boolean
}

/** The rules of cloudflared's setting, in their order. */
function rulesOf(setting: string): readonly Rule[] {
  const [, rules = ''] = setting.split('\ningress:\n')
  return rules
    .split(/^ {2}- /m)
    .slice(1)
    .map((rule) => {
      const valueOf = (name: string) => new RegExp(`^ *${name}: (.*)$`, 'm').exec(rule)?.[1]
      const path = valueOf('path')
      return {
        hostname: valueOf('hostname'),
        path: path === undefined ? undefined : new RegExp(path),
        service: valueOf('service') ?? '',
        needsToken: /^ {6}access:\n {8}required: true$/m.test(rule),
      }
    })
}

/** What Cloudflare's network adds for who has signed in to Access. */
const ACCESS_TOKEN = 'token-of-access'

/**
 * Cloudflare's network and cloudflared: Access names who has signed in, with the cookie; nothing removes a name
 * that a visitor sends where Access is not asked.
 */
function startCloudflared(t: Owner, setting: string, email: string): Promise<string> {
  const rules = rulesOf(setting)
  return startProxy(t, ({ host, path, headers }) => {
    const [name = ''] = host.split(':')
    const [plainPath = ''] = path.split('?')
    const rule = rules.find(
      (one) =>
        (one.hostname === undefined || one.hostname === name) &&
        (one.path === undefined || one.path.test(decodeURI(plainPath))),
    )
    if (rule === undefined) return 502
    if (rule.service.startsWith('http_status:')) return Number(rule.service.slice(12))
    const isSignedIn = headers.cookie === `CF_Authorization=${ACCESS_TOKEN}`
    if (rule.needsToken && !isSignedIn) return 403
    const named = isSignedIn && {
      'cf-access-authenticated-user-email': email,
      'cf-access-jwt-assertion': ACCESS_TOKEN,
    }
    const client = '203.0.113.9'
    const before = headers['x-forwarded-for']
    return {
      to: rule.service,
      headers: {
        ...named,
        'cf-connecting-ip': client,
        'x-forwarded-for': before === undefined ? client : `${String(before)},${client}`,
        'x-forwarded-proto': 'https',
      },
    }
  })
}
