import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from '../helpers/http.ts'
import { runNginx } from './nginx.ts'
import { ROOT, recordProcess, runFolder } from '../helpers/program.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import type { Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'
import type { TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

/** Who is signed in with `COOKIE`, and the groups, as the sign-in service says. */
export const EMAIL = 'ann@example.com'
const GROUPS = 'dev,ops'
/** Who is signed in with `ALONE`, without groups. */
export const ALONE = 'session=bob'
export const COOKIE = 'session=ann'

/**
 * A proxy with the setting of `deploy/`, in which only addresses, TLS and the password of `/relay` are others;
 * without a password this stays as it is delivered.
 */
export type StartProxy = (t: Owner, server: TestServer, password?: string) => Promise<string>

/** The name that the forwarder has at `/relay`. */
export const FORWARDER = 'forwarder'

/** Answers as Authelia does: 200 with the user's headers, or 401 for nginx and a redirect for others. */
async function startSignIn(t: Owner): Promise<number> {
  const { port } = await startReceiver(t, ({ path, headers }, response) => {
    if (headers.cookie === COOKIE) {
      const named = { 'Remote-Email': EMAIL, 'Remote-Groups': GROUPS }
      return void response.writeHead(200, named).end()
    }
    if (headers.cookie === ALONE) {
      return void response.writeHead(200, { 'Remote-Email': 'bob@example.com' }).end()
    }
    if (path.startsWith('/api/authz/auth-request')) return void response.writeHead(401).end()
    response.writeHead(302, { Location: 'https://auth.example.com/' }).end()
  })
  return port
}

/** Replaces what an operator would, and says when there is nothing to replace. */
function change(text: string, changes: readonly (readonly [string, string])[]): string {
  return changes.reduce((changed, [from, to]) => {
    if (!changed.includes(from)) throw new Error(`expected in the proxy's setting: ${from}`)
    return changed.replaceAll(from, () => to)
  }, text)
}

async function addresses(
  t: Owner,
  server: TestServer,
): Promise<readonly (readonly [string, string])[]> {
  const signIn = await startSignIn(t)
  return [
    ['127.0.0.1:8080', new URL(server.hooks).host],
    ['127.0.0.1:8081', new URL(server.links).host],
    ['127.0.0.1:8082', new URL(server.ops).host],
    ['127.0.0.1:9091', `127.0.0.1:${signIn}`],
  ]
}

function example(name: string): string {
  return readFileSync(join(ROOT, 'deploy', name), 'utf8')
}

/** nginx; gives where it listens for all three names. */
export const startNginxExample: StartProxy = async (t, server, password) => {
  const port = await freePort()
  const users = join(await temporaryFolder(t, 'users'), 'htpasswd')
  if (password !== undefined) writeFileSync(users, `${FORWARDER}:{PLAIN}${password}\n`)
  const setting = change(example('nginx.conf'), [
    ...(await addresses(t, server)),
    ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
    ['listen 80;', `listen 127.0.0.1:${await freePort()};`],
    ['/etc/nginx/gatehouse.htpasswd', users],
  ])
  const address = `http://127.0.0.1:${port}`
  await runNginx(t, setting.replaceAll(/^ *ssl_certificate.*\n/gm, ''), `${address}/healthz`)
  return address
}

/** What the example tells an operator to change at `/relay`. */
function caddyPassword(password: string): readonly (readonly [string, string])[] {
  const asked = ['hash-password', '--plaintext', password]
  const hash = spawnSync('caddy', asked, { encoding: 'utf8' }).stdout.trim()
  const lines = ['basicauth {', `\tforwarder ${hash}`, '}', 'reverse_proxy 127.0.0.1:8080']
  return [
    ['\t#\tbasicauth {\n\t#\t\tforwarder HASH\n\t#\t}\n\t#\treverse_proxy 127.0.0.1:8080\n', ''],
    ['respond "No password is set for /relay." 403', lines.join('\n\t\t')],
  ]
}

/** Caddy; gives where it listens for all three names. */
export const startCaddyExample: StartProxy = async (t, server, password) => {
  const [port, folder] = [await freePort(), await temporaryFolder(t, 'caddy')]
  const setting = change(example('Caddyfile'), [
    ...(password === undefined ? [] : caddyPassword(password)),
    ...(await addresses(t, server)),
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
  if (child.pid !== undefined) recordProcess(runFolder(), child.pid)
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
