import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../helpers/http.ts'
import { freePort, temporaryFolder, type Owner } from '../helpers/owner.ts'
import { ROOT, recordChild } from '../helpers/program.ts'
import { startReceiver } from '../helpers/replays.ts'
import { SERVICES, type Service } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { onPath } from '../runner/system-parts.ts'

/** An nginx of our own. */
export type Nginx = {
  /** Where it serves each service: `http://127.0.0.1:PORT`. */
  addresses: Readonly<Record<Service, string>>
  /** What it has logged as an error so far. */
  errors(): string
  /** Everybody is signed in, and without a name, until this is set to false. */
  signedIn: boolean
}

/** The name and the password with which a forwarder comes in at `/relay`. */
export const FORWARDER = 'forwarder:word-of-the-forwarder'

/** Ports of an instance's services. */
export type Ports = Readonly<Record<Service, number>>

/**
 * Starts nginx with `deploy/nginx-two-instances.conf`, in which only addresses, ports, TLS and the file of
 * passwords are other ones: the first instance is 10.0.0.11 there, the second 10.0.0.12. It ends with the test.
 */
export async function startNginx(t: Owner, instances: readonly [Ports, Ports]): Promise<Nginx> {
  const ports = { hooks: await freePort(), links: await freePort(), ops: await freePort() }
  const address = (service: Service) => `http://127.0.0.1:${ports[service]}`
  const addresses = { hooks: address('hooks'), links: address('links'), ops: address('ops') }
  const users = join(await temporaryFolder(t, 'users'), 'htpasswd')
  writeFileSync(users, FORWARDER.replace(':', ':{PLAIN}'))
  const signIn = await startReceiver(t, (_, response) => {
    response.writeHead(nginx.signedIn ? 200 : 401).end()
  })
  const setting = ownSetting(instances, ports)
    .replaceAll('127.0.0.1:9091', `127.0.0.1:${signIn.port}`)
    .replace('/etc/nginx/gatehouse.htpasswd', users)
  const errors = await runNginx(t, setting, `${addresses.ops}/healthz`)
  const nginx: Nginx = { addresses, errors, signedIn: true }
  return nginx
}

/**
 * Runs nginx with a setting as a file of `conf.d` has it until the test ends, and waits until it answers
 * at `probe`. Gives what reads the errors that it has logged so far. `runAs` makes it another user's.
 */
export async function runNginx(
  t: Owner,
  setting: string,
  probe: string,
  runAs: readonly string[] = [],
) {
  const program = onPath('nginx')
  if (program === undefined) {
    throw new Error('nginx is missing: install it, on Debian apt-get install nginx')
  }
  const folder = runAs.length === 0 ? await temporaryFolder(t, 'nginx') : openFolder(t)
  const log = join(folder, 'error.log')
  const file = join(folder, 'nginx.conf')
  writeFileSync(file, mainFile(folder, setting))

  const output = openSync(log, 'a')
  // One process in the foreground: without a master there is none to outlive the other.
  const own = 'daemon off; master_process off; error_log stderr info;'
  const args = ['-p', folder, '-c', file, '-e', 'stderr', '-g', own]
  const [first = '', ...rest] = [...runAs, program, ...args]
  const child = spawn(first, rest, { stdio: ['ignore', 'ignore', output] })
  closeSync(output)
  recordChild(child)
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
  })
  try {
    await until(
      async () => (await request(probe)).status === 200,
      'nginx to answer for an instance',
    )
  } catch (error) {
    throw new Error(`nginx did not start: ${readFileSync(log, 'utf8').slice(-2_000)}`, {
      cause: error,
    })
  }
  return () => readFileSync(log, 'utf8').replaceAll(/^.*\[(?:info|notice|warn)\].*\n/gm, '')
}

/** A folder that every user may use, for as long as the test runs. */
export function openFolder(t: Owner) {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-open-'))
  chmodSync(folder, 0o777)
  t.teardown(() => rmSync(folder, { recursive: true }))
  return folder
}

/** The documented setting with the addresses of this test, and without TLS. */
function ownSetting(instances: readonly [Ports, Ports], ports: Ports) {
  let text = readFileSync(join(ROOT, 'deploy', 'nginx-two-instances.conf'), 'utf8')
  for (const [at, service] of SERVICES.entries()) {
    for (const [number, instance] of instances.entries()) {
      const place = `10.0.0.${11 + number}:${8080 + at}`
      text = replaceOnce(text, `server ${place} `, `server 127.0.0.1:${instance[service]} `)
    }
    text = replaceFirst(text, 'listen 443 ssl;', `listen 127.0.0.1:${ports[service]};`)
  }
  return text.replaceAll(/^ *ssl_certificate.*\n/gm, '')
}

function replaceOnce(text: string, from: string, to: string) {
  if (text.split(from).length !== 2) throw new Error(`expected once in nginx's setting: ${from}`)
  return text.replace(from, to)
}

function replaceFirst(text: string, from: string, to: string) {
  if (!text.includes(from)) throw new Error(`expected in nginx's setting: ${from}`)
  return text.replace(from, to)
}

function mainFile(folder: string, setting: string) {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const places = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join('\n')
  return `pid ${join(folder, 'nginx.pid')};
events { worker_connections 512; }
http {
access_log off;
${places}
${setting}
}
`
}
