import { t } from 'tap'
import { runCli } from '../helpers/cli.ts'
import { seedEmbedded } from '../helpers/backends.ts'
import {
  HERE,
  IN_OWN_NETWORK,
  STRANGER,
  callInside,
  lacksOwnNetwork,
} from '../deploy/own-network.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startServerProcess } from '../helpers/server-process.ts'

const RESETS = 40

/** The bytes of a form post. */
function form(path: string, body: string, ...headers: readonly string[]) {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: close',
    ...headers,
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}

await t.test(
  'a client that resets its connection is nobody',
  { skip: lacksOwnNetwork() },
  async (t) => {
    const env = {
      GATEHOUSE_DATA_DIR: await temporaryFolder(t),
      GATEHOUSE_TRUSTED_PROXIES: '127.0.0.1/32',
      HOOKS_ADDR: '0.0.0.0:0',
      // Here IPv4 clients have addresses such as ::ffff:127.0.0.1.
      LINKS_ADDR: '[::]:0',
    }
    await seedEmbedded(env)
    const services = ['hooks', 'links'] as const
    const server = await startServerProcess(t, { services, env, program: IN_OWN_NETWORK })
    const portOf = (address: string) => Number(new URL(address).port)
    const [hooks, links] = [portOf(server.hooks), portOf(server.links)]
    const ask = (port: number, text: string, from: string) =>
      callInside(server.pid, { host: from === STRANGER ? HERE : from, port, from, text })

    const attacks: readonly (readonly [port: number, text: string])[] = [
      [hooks, form('/settings', 'sse_retry_ms=4321')],
      [
        links,
        form('/-/new', 'slug=stolen&url=https://evil.test/', 'Remote-Email: eve@example.com'),
      ],
      [hooks, 'no HTTP at all\r\n\r\n'],
    ]
    const attack = () =>
      Promise.all(
        attacks.map(([port, text]) =>
          callInside(server.pid, { host: HERE, port, from: STRANGER, text, resets: RESETS }),
        ),
      )
    // All are reset before the server accepts them.
    process.kill(server.pid, 'SIGSTOP')
    await attack().finally(() => process.kill(server.pid, 'SIGCONT'))
    await attack()

    // Connections are accepted and statements run in their order: what came before these has been carried out.
    const page = 'Host: localhost\r\nConnection: close\r\n\r\n'
    t.match(await ask(hooks, `GET /log HTTP/1.1\r\n${page}`, STRANGER), /^HTTP\/1\.1 403 /)
    t.match(await ask(hooks, 'no HTTP\r\n\r\n', STRANGER), /^HTTP\/1\.1 400 /)
    const saved = await ask(hooks, form('/settings', 'retention_max_age_days=77'), '127.0.0.1')
    t.match(saved, /^HTTP\/1\.1 200 [^]*value="77"/)
    t.notMatch(saved, '4321', 'no setting was changed')
    const own = form('/-/new', 'slug=own&url=https://own.test/', 'Remote-Email: ann@example.com')
    t.match(await ask(links, own, '127.0.0.1'), /^HTTP\/1\.1 303 /)
    // The first request that a proxy makes in somebody's name adds this user.
    const { stdout } = await runCli(['user', 'list'], { env })
    t.match(stdout, 'ann@example.com')
    t.notMatch(stdout, 'eve@example.com', "nothing was done in somebody's name")

    await server.stop()
    const lines = server
      .logs()
      .map((line): Readonly<Record<string, unknown>> => JSON.parse(line))
      .filter(({ msg, route }) => msg === 'request' && route !== '/healthz')
    const local = lines.filter(({ client, peer = client }) => peer === '127.0.0.1')
    t.same(
      local.map(({ route }) => route),
      ['/settings', '/-/new'],
    )
    const malformed = lines.filter(({ route }) => route === '(malformed)')
    t.same(new Set(malformed.map(({ client }) => client)), new Set([STRANGER]))
  },
)
