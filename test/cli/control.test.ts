import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Server } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { t, type Test } from 'tap'
import { embedded, postgres } from '../helpers/backends.ts'
import { openCli, runOk, FREE, check, refuseCommands, runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { expectStatus } from '../helpers/refusals.ts'

// Commands beside a server on the embedded engine: it runs them, asked through its socket.

const LIMIT = 1024 * 1024
/** An export of them has more parts than Node lets listeners wait for one event without a warning. */
const COUNT = 6_500
const LINKS = `
insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
select 'many-' || i, 'https://l.test/', '', repeat('x', 300), 'public', true, now(), now()
  from generate_series(1, ${COUNT}) i;
insert into links.users (email, display_name, role, created_at)
values ('many@example.com', 'Many', 'user', now());
insert into links.link_owners select u.id, l.slug, true from links.users u cross join links.links l`

t.test('commands beside a server on the embedded engine', async (t) => {
  const env: Env = { ...FREE, ...(await embedded.env(t)) }
  await embedded.query(env, LINKS)
  const server = await startServerProcess(t, { services: ['hooks', 'links'], env })
  const data = env['GATEHOUSE_DATA_DIR'] ?? ''
  const socketPath = join(data, 'control.sock')

  await t.test('its socket is for this user, and what comes over it is bounded', async (t) => {
    const { mode } = await stat(socketPath)
    t.equal((mode & 0o777).toString(8), '600')
    const send = async (body: string) => {
      const { text } = await request('http://control/', { method: 'POST', body, socketPath })
      return text.trimEnd().split('\n')
    }
    const words = JSON.stringify(['user', 'add', 'a'.repeat(LIMIT)])
    t.match(await send(`${words}\n`), ['gatehouse: The command is too long', '{"code":2}'])
    t.match(await send('{}\n'), ['must be a list of words', '{"code":2}'])
    t.match(await send('nothing\n'), ['"err"', '{"code":1}'])
    const file = `slug,url\n${'x'.repeat(4 * LIMIT)}\n`
    const asked = await send(`["import","-"]\n${file}`)
    const refused = ['is longer than 1 MiB', 'refused 1', '{"code":1}']
    t.match(asked, refused, 'a file of any size is not')
  })

  await t.test('what needs the database for itself is refused', async (t) => {
    const line = / has the database to itself: stop the server, /
    const move = ['db', 'move', '--to', 'postgres://127.0.0.1:1/x']
    const target = { env, state: async () => (await runCli('user list', { env })).stdout }
    const folder = await temporaryFolder(t, 'backups')
    const whole = join(folder, 'whole')
    await runOk(`backup ${whole}`, { env: await postgres.env(t) })
    await refuseCommands(t, target, [
      ['serve hooks', 1, /held by another process/],
      [`restore ${whole}`, 1, line],
      [move, 1, line],
    ])
  })

  await t.test('a check asks for the database; the rest is its own', async (t) => {
    const { host } = new URL(server.hooks)
    const beside = await check({ ...env, HOOKS_ADDR: host, OPS_RUNNER: 'cli', PATH: '/nowhere' })
    t.equal(beside.code, 0)
    t.match(beside.about('migrations'), [/^ok \d+ applied$/])
    t.match(beside.about('runner'), ['warn cli, and no session can run: '])
    const migrated = await runCli('migrate', { env })
    t.match(migrated, { code: 0, stdout: 'nothing to apply\n', stderr: '' })
  })

  await t.test('a command that says more than its caller takes waits each time', async (t) => {
    const { stdout } = await runOk('export', { env })
    t.equal(stdout.split('\n').length, COUNT + 2)
    const warnings = server.logs().filter((line) => !line.startsWith('{'))
    t.same(warnings, [], 'Node warns of nothing')
  })

  await t.test('a command that has had enough does not wait for its input’s end', async (t) => {
    const stdin = new PassThrough()
    stdin.write('slug,url\n')
    t.equal(await openCli(t, 'import - --owner no@example.com', env, stdin).ended, 1)
  })

  await t.test('a server that dies in between is a failure', (t) => diesBetween(t, env, server))

  t.ok(existsSync(socketPath), 'a crash leaves the socket')
  const alone = await runCli('provider add later --open', { env })
  t.match(alone, { code: 0, stderr: 'generic:later created' })
  const servers: Server[] = []
  const note = (message: unknown) => servers.push((message as { server: Server }).server)
  subscribe('tracing:net.server.listen:asyncStart', note)
  t.teardown(() => unsubscribe('tracing:net.server.listen:asyncStart', note))
  const next = await startServer(t, { services: ['hooks', 'links'], env })
  const listed = await runCli('provider list', { env })
  t.match(listed, { code: 0, stdout: /^generic:later /m }, 'the next server opens it anew')
  const { stdout } = await runOk('link list --owner operator@localhost --limit 1001 --json', {
    env,
  })
  t.equal(
    stdout.match(/"slug":"l\d/g)?.length,
    1_000,
    'what was reported is done, and nothing else',
  )

  t.equal(servers.length, 3, 'two services and the control socket')
  for (const listening of servers) listening.emit('error', new Error('accept ENFILE'))
  const lines = next.logs().filter((line) => line.includes('connection not accepted'))
  const told = lines.map((line): Record<string, unknown> => JSON.parse(line))
  t.same(told.map(({ service }) => service).toSorted(), ['control', 'hooks', 'links'])
  for (const line of told) t.match(line, { level: 'error', error: 'accept ENFILE' })
  for (const base of [next.hooks, next.links]) {
    await expectStatus(200, request(`${base}/healthz`), 'it ends no listener')
  }
  await next.stop()
  t.notOk(existsSync(socketPath), 'and takes it away when it stops')
})

/** Kills the server during an import, once it has reported the first thousand lines. */
async function diesBetween(t: Test, env: Env, server: ServerProcess) {
  const input = new PassThrough()
  const command = openCli(t, 'import - --owner operator@localhost', env, input)
  const lines = Array.from({ length: 1_100 }, (_, at) => `l${at},https://l.test/${at}`)
  input.write(`slug,url\n${lines.join('\n')}\n`)
  await until(() => command.stdout().includes('l999\n'), 'the first thousand lines')
  await server.kill()
  t.equal(await command.ended, 1)
  t.match(command.stderr(), /^gatehouse: \S/)
}
