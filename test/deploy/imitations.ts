import { request as forward, createServer, type IncomingHttpHeaders } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Owner } from '../helpers/owner.ts'

// Proxies that Debian does not have, as far as Gatehouse meets them: which address they lead to, and
// which headers they remove and set. What they do follows their documentation and sources.

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
      ...{
        host: to.hostname,
        port: to.port,
        path: to.pathname.replace(/\/$/, '') + (passed.path ?? path),
      },
      ...{ method, headers: sent, agent: false },
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
export type Visitor = { login: string } | 'tagged' | 'funnel'

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
export function startTailscale(
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
        ...{ 'x-forwarded-host': host, 'x-forwarded-proto': 'https' },
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
export const ACCESS_TOKEN = 'token-of-access'

/**
 * Cloudflare's network and cloudflared: Access names who has signed in, with the cookie; nothing removes a name
 * that a visitor sends where Access is not asked.
 */
export function startCloudflared(t: Owner, setting: string, email: string): Promise<string> {
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
