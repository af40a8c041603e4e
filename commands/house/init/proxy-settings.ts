import { assetText } from '../../../kernel/assets.ts'
import { SERVICES, type ServiceName } from '../../frame/configuration.ts'

/** What the setting of a proxy is made for. */
export interface ProxyAnswers {
  proxy: Proxy
  /** Asked by Caddy and nginx about each request. The others sign people in themselves. */
  signIn: SignIn
  /** Where the sign-in service listens: host:port. */
  signInAddress: string
  /** The page to which Authelia sends people who are not signed in. */
  portal: string
  services: Readonly<Record<ServiceName, { publicUrl: URL; address: string }>>
  /** What people type before the slash of a short link. */
  shortKeyword: string
}

export const PROXIES = ['caddy', 'nginx', 'tailscale', 'cloudflare'] as const
export type Proxy = (typeof PROXIES)[number]

export const SIGN_INS = ['authelia', 'oauth2-proxy'] as const
export type SignIn = (typeof SIGN_INS)[number]

/** Where each sign-in service listens unless it is told to listen elsewhere. */
export const SIGN_IN_ADDRESSES: Readonly<Record<SignIn, string>> = {
  authelia: '127.0.0.1:9091',
  'oauth2-proxy': '127.0.0.1:4180',
}

/**
 * The headers in which each proxy names who is signed in. Authelia and oauth2-proxy have the same:
 * the settings of Caddy and nginx rename those of oauth2-proxy.
 */
export const IDENTITY_HEADERS: Readonly<Record<Proxy, { user: string; groups?: string }>> = {
  caddy: { user: 'Remote-Email', groups: 'Remote-Groups' },
  nginx: { user: 'Remote-Email', groups: 'Remote-Groups' },
  tailscale: { user: 'Tailscale-User-Login' },
  cloudflare: { user: 'Cf-Access-Authenticated-User-Email' },
}

/** Whether a proxy asks a sign-in service of its own. */
export function asksSignIn(proxy: Proxy) {
  return proxy === 'caddy' || proxy === 'nginx'
}

type Change = readonly [from: string, to: string]

const EXAMPLES: Readonly<Record<ServiceName, { host: string; address: string }>> = {
  hooks: { host: 'hooks.example.com', address: '127.0.0.1:8080' },
  links: { host: 'go.example.com', address: '127.0.0.1:8081' },
  ops: { host: 'ops.example.com', address: '127.0.0.1:8082' },
}

/** The setting of a proxy: the example in `deploy/` for these answers. */
export function proxySetting(answers: ProxyAnswers): string {
  const { proxy } = answers
  if (proxy === 'tailscale') return tailscaleSetting(answers)
  if (proxy === 'cloudflare') return withServices(assetText('deploy/cloudflared.yml'), answers)
  return withServices(withSignIn(answers), answers)
}

function withServices(text: string, { services, shortKeyword }: ProxyAnswers) {
  const hosts = SERVICES.map((name): Change => {
    return [EXAMPLES[name].host, services[name].publicUrl.host]
  })
  const addresses = SERVICES.map((name): Change => {
    return [EXAMPLES[name].address, services[name].address]
  })
  const keyword: Change[] = [
    ['http://go {', `http://${shortKeyword} {`],
    ['server_name go;', `server_name ${shortKeyword};`],
    ['`go/docs`', `\`${shortKeyword}/docs\``],
  ]
  return change(text, [...keyword, ...hosts, ...addresses])
}

function tailscaleSetting({ services }: ProxyAnswers) {
  const examplePorts: Readonly<Record<ServiceName, string>> = {
    links: '443',
    hooks: '8443',
    ops: '8444',
  }
  const changes = SERVICES.map((name): Change => {
    const { publicUrl, address } = services[name]
    const port = publicUrl.port === '' ? '443' : publicUrl.port
    return [
      `--https=${examplePorts[name]} http://${EXAMPLES[name].address}`,
      `--https=${port} http://${address}`,
    ]
  })
  const receivers: Change = [EXAMPLES.hooks.address, services.hooks.address]
  return change(assetText('deploy/tailscale.sh'), [...changes, receivers])
}

/** The example of Caddy or nginx with the chosen sign-in service in the place of Authelia. */
function withSignIn({ proxy, signIn, signInAddress, portal }: ProxyAnswers) {
  const example = assetText(proxy === 'caddy' ? 'deploy/Caddyfile' : 'deploy/nginx.conf')
  const address: Change = [SIGN_IN_ADDRESSES[signIn], signInAddress]
  if (signIn === 'authelia') {
    return change(example, [address, ['https://auth.example.com/', `${portal}/`]])
  }
  if (proxy === 'caddy') {
    const login = change(assetText('deploy/oauth2-proxy.Caddyfile'), [address])
    return change(example, [[blockOf(example, '(login) {\n', '\n}\n'), login]])
  }
  const location = change(assetText('deploy/oauth2-proxy.nginx.conf'), [address])
  return change(example, [
    [blockOf(example, '  location = /authenticate {\n', '\n  }\n'), location],
    ['$upstream_http_remote_email', '$upstream_http_x_auth_request_email'],
    ['$upstream_http_remote_groups', '$upstream_http_x_auth_request_groups'],
    ['https://auth.example.com/?rd=', '$scheme://$host/oauth2/sign_in?rd='],
  ])
}

/** The first part of a text that begins and ends so. */
function blockOf(text: string, begin: string, end: string) {
  const from = text.indexOf(begin)
  return text.slice(from, text.indexOf(end, from) + end.length)
}

/**
 * Replaces each text by another wherever it stands. In two passes: what one change puts in may be
 * what another one looks for.
 */
function change(text: string, changes: readonly Change[]) {
  let changed = text
  for (const [at, [from]] of changes.entries()) changed = changed.replaceAll(from, `\0${at}\0`)
  for (const [at, [, to]] of changes.entries()) changed = changed.replaceAll(`\0${at}\0`, () => to)
  return changed
}
