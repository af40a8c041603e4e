import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { FORWARDER, runNginx } from './nginx.ts'
import { recordChild } from '../helpers/program.ts'
import { freePort, temporaryFolder, type Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import type { Service, TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** Who is signed in with `COOKIE`, and the groups, as the sign-in service says. */
export const EMAIL = 'ann@example.com'
const GROUPS = 'dev,ops'
/** Who is signed in with `ALONE`, without groups. */
export const ALONE = 'session=bob'
export const COOKIE = 'session=ann'

/**
 * A proxy with the setting that `gatehouse init` shows, in which only TLS, ports and the password of `/relay` are
 * others; unless `hasPassword` this stays as it is delivered.
 */
type StartProxy = (
  t: Owner,
  server: TestServer,
  signIn: SignIn,
  hasPassword: boolean,
) => Promise<string>

/** Its hash at bcrypt's lowest cost: one of `caddy hash-password` takes a second to make and to check. */
const HASH = '$2b$04$abcdefghijklmnopqrstuun.Fc7wgh0oBmF.nlJib8qZYVSpVWiTy'

/** Who a request to a sign-in service comes from, by its cookie. */
function signedIn(cookie: string | undefined) {
  if (cookie === COOKIE) return { email: EMAIL, groups: GROUPS }
  return cookie === ALONE ? { email: 'bob@example.com', groups: undefined } : undefined
}

/**
 * Answers as Authelia does: 200 with the user's headers, or 401 for nginx and a redirect for others. It has to be
 * told the method and the address of the request, and refuses what does not say them.
 */
function startAuthelia(t: Owner) {
  return startReceiver(t, ({ path, headers }, response) => {
    const forNginx = path === '/api/authz/auth-request'
    const told = forNginx
      ? ['x-original-method', 'x-original-url']
      : ['x-forwarded-method', 'x-forwarded-proto', 'x-forwarded-host', 'x-forwarded-uri']
    if (told.some((name) => headers[name] === undefined)) {
      return void response.writeHead(400).end()
    }
    const user = signedIn(headers.cookie)
    if (user !== undefined) {
      const { email, groups } = user
      const named = { 'Remote-User': 'x', 'Remote-Name': 'X', 'Remote-Email': email }
      response.writeHead(200, { ...named, ...(groups && { 'Remote-Groups': groups }) })
    } else if (forNginx) response.writeHead(401)
    else response.writeHead(302, { Location: 'https://auth.example.com/?rd=x' })
    response.end()
  })
}

/** Answers as oauth2-proxy does with --reverse-proxy and --set-xauthrequest. */
function startOauth2Proxy(t: Owner) {
  return startReceiver(t, ({ path, headers }, response) => {
    if (path.startsWith('/oauth2/sign_in')) return void response.end('Sign in with example.com')
    const user = signedIn(headers.cookie)
    if (path !== '/oauth2/auth' || user === undefined) return void response.writeHead(401).end()
    const { email, groups } = user
    const named = { 'X-Auth-Request-User': '7', 'X-Auth-Request-Email': email }
    response.writeHead(202, { ...named, ...(groups && { 'X-Auth-Request-Groups': groups }) }).end()
  })
}

const SIGN_INS = { authelia: startAuthelia, 'oauth2-proxy': startOauth2Proxy }
export type SignIn = keyof typeof SIGN_INS

/** Replaces what an operator would, and says when there is nothing to replace. */
function change(text: string, changes: readonly (readonly [string, string])[]) {
  return changes.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`expected in the proxy's setting: ${from}`)
    return changed.replaceAll(from, () => to)
  }, text)
}

/** The setting that `gatehouse init` shows for a server with these addresses. */
export async function settingFor(t: Owner, server: Pick<TestServer, Service>, flags: string) {
  const folder = await temporaryFolder(t, 'init')
  const env = {
    HOOKS_ADDR: new URL(server.hooks).host,
    LINKS_ADDR: new URL(server.links).host,
    OPS_ADDR: new URL(server.ops).host,
    GATEHOUSE_DATA_DIR: join(folder, 'data'),
  }
  const { stdout, stderr } = await runCli(`init --file ${folder}/gatehouse.env ${flags}`, { env })
  if (stdout === '') throw new Error(`init showed nothing: ${stderr}`)
  return stdout
}

async function example(t: Owner, server: TestServer, proxy: string, signIn: SignIn) {
  const { port } = await SIGN_INS[signIn](t)
  const urls =
    '--hooks-base-url https://hooks.example.com --links-base-url https://go.example.com --ops-base-url https://ops.example.com'
  const flags = `${urls} --proxy ${proxy} --sign-in ${signIn} --sign-in-address 127.0.0.1:${port}`
  return await settingFor(t, server, flags)
}

/** nginx; gives where it listens for all three names. */
export const startNginxExample: StartProxy = async (t, server, signIn, hasPassword) => {
  const port = await freePort()
  const users = join(await temporaryFolder(t, 'users'), 'htpasswd')
  if (hasPassword) writeFileSync(users, FORWARDER.replace(':', ':{PLAIN}'))
  const setting = change(await example(t, server, 'nginx', signIn), [
    ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
    ['listen 80;', `listen 127.0.0.1:${await freePort()};`],
    ['/etc/nginx/gatehouse.htpasswd', users],
  ])
  const address = `http://127.0.0.1:${port}`
  await runNginx(t, setting.replaceAll(/^ *ssl_certificate.*\n/gm, ''), `${address}/healthz`)
  return address
}

/** What the example tells an operator to change at `/relay`. */
function caddyPassword(address: string): readonly (readonly [string, string])[] {
  const lines = ['basicauth {', `\tforwarder ${HASH}`, '}', `reverse_proxy ${address}`]
  return [
    [`\t#\tbasicauth {\n\t#\t\tforwarder HASH\n\t#\t}\n\t#\treverse_proxy ${address}\n`, ''],
    ['respond "No password is set for /relay." 403', lines.join('\n\t\t')],
  ]
}

/** Caddy; gives where it listens for all three names. */
export const startCaddyExample: StartProxy = async (t, server, signIn, hasPassword) => {
  const [port, folder] = [await freePort(), await temporaryFolder(t, 'caddy')]
  const setting = change(await example(t, server, 'caddy', signIn), [
    ...(hasPassword ? caddyPassword(new URL(server.hooks).host) : []),
    ['hooks.example.com {', `http://hooks.example.com:${port}, http://127.0.0.1:${port} {`],
    ['\ngo.example.com {', `\nhttp://go.example.com:${port} {`],
    ['ops.example.com {', `http://ops.example.com:${port} {`],
    ['http://go {', `http://go:${port} {`],
  ])
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n\tadmin off\n}\n${setting}`)
  const args = ['run', '--adapter', 'caddyfile', '--config', file]
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  const child = spawn('caddy', args, { stdio: ['ignore', 'ignore', 'pipe'], env })
  recordChild(child)
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const address = `http://127.0.0.1:${port}`
  await until(async () => (await request(`${address}/healthz`)).status === 200, 'Caddy').catch(
    (error: unknown) => {
      throw new Error(`Caddy did not start: ${said.slice(-2_000)}`, { cause: error })
    },
  )
  return address
}
