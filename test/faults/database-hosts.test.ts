import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { createSender, keepAlive, send } from '../helpers/deliveries.ts'
import { runCli } from '../helpers/cli.ts'
import { listen } from '../helpers/listen.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import { inLongRun, recordFolder, runFolder } from '../helpers/program.ts'
import { stallPostgres } from '../helpers/outages.ts'
import {
  giveToAccount,
  ownPostgres,
  run,
  runProgram,
  startClusterProcess,
  type Cluster,
} from '../helpers/postgres.ts'
import { follow } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

await inLongRun(t, 'several hosts: the one that takes changes is used', async (t: Test) => {
  const primary = await ownPostgres(t)
  const database = await primary.createDatabase()
  const standby = await startStandby(t, primary)
  const sender = createSender()
  const hosts = (...ports: readonly number[]) => {
    const { username, password, pathname } = new URL(database)
    const list = ports.map((port) => `127.0.0.1:${port}`).join(',')
    return `postgres://${username}:${password}@${list}${pathname}`
  }
  // The standby comes first: it answers, and must not be believed.
  const url = `${hosts(standby.port, primary.port)}?target_session_attrs=read-write`
  const env = { ...sender.env, DATABASE_URL: url }
  const { hooks, logs } = await startServer(t, { services: ['hooks'], env })
  const agent = keepAlive(t, 1)
  const accepted = async () =>
    (await send(agent, hooks, await sender.delivery())).status === 202 ? 'accepted' : undefined
  t.equal(await accepted(), 'accepted')
  const stream = follow(t, `${hooks}/events`)
  await until(() => stream.ids.length === 1, 'its event')
  const alone = { ...env, DATABASE_URL: `${hosts(standby.port)}?target_session_attrs=read-write` }
  const refused = await runCli(['migrate'], { env: alone })
  t.match(refused, { code: 1, stderr: /the server is a standby, or takes no changes/ })
  const none = await runCli(['migrate'], {
    env: { ...env, DATABASE_URL: hosts(standby.port, await freePort()) },
  })
  const reasons = /none of the servers takes changes \(\S+: it is a standby; .*ECONNREFUSED/
  t.match(none, { code: 1, stderr: reasons })

  const copy = standby.url(new URL(database).pathname.slice(1))
  const stored = () => run(copy, 'select id from hooks.events')
  await until(async () => (await stored()).length === 1, 'the standby to have it')
  // A stopped primary says nothing: connections to it are given up, also the one that listens.
  await stallPostgres(t, primary)
  await run(standby.url(), 'select pg_promote()')
  await until(accepted, 'changes on the promoted server', 60_000)
  const { length } = await stored()
  await until(() => stream.ids.length === length, 'the stream to go on')
  t.same(
    stream.ids,
    [...new Set(stream.ids)].toSorted((a, b) => a - b),
    'each event once',
  )
  t.notMatch(logs().join('\n'), /"level":"error"/)
})

await t.test('a unix socket, as libpq writes it', async (t) => {
  const { DATABASE_URL: direct = '' } = await postgres.env(t)
  const { port, username, password, pathname } = new URL(direct)
  const folder = await temporaryFolder(t, 'socket')
  const server = createServer((socket) => {
    const behind = connect(Number(port), '127.0.0.1')
    socket.pipe(behind).pipe(socket)
    for (const end of [socket, behind])
      end.on('error', () => [socket, behind].map((one) => one.destroy()))
  })
  await listen(t, server, { path: join(folder, '.s.PGSQL.6543') })
  const user = `${username}:${password}@`
  for (const url of [
    `postgres://${user}${pathname}?host=${folder}&port=6543`,
    `postgres://${user}${encodeURIComponent(folder)}:6543${pathname}?sslmode=prefer`,
  ]) {
    const result = await runCli(['check'], { env: { DATABASE_URL: url } })
    t.match(
      result,
      { stdout: /ok .*PostgreSQL server [\d.]+.*, without TLS/ },
      url.replace(password, ''),
    )
  }
  const nowhere = `postgres://${user}${pathname}?host=${folder}&port=6544`
  const missing = await runCli(['migrate'], { env: { DATABASE_URL: nowhere } })
  t.match(missing, { code: 1, stderr: /ENOENT/ })
})

/** A hot standby of a cluster, as a copy of its files; it ends with the test. */
async function startStandby(t: Test, primary: Cluster) {
  // Beside the run's folder, which PostgreSQL's own user may not enter.
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-standby-'))
  recordFolder(runFolder(), folder)
  giveToAccount(folder)
  const copy = ['--pgdata', join(folder, 'cluster'), '--dbname', primary.url()]
  const options = [...copy, '--write-recovery-conf', '--checkpoint=fast', '--no-sync']
  runProgram('pg_basebackup', options, folder)
  const port = await freePort()
  const url = (database?: string) => {
    const address = new URL(primary.url(database))
    address.port = String(port)
    return address.href
  }
  const child = startClusterProcess(folder, port)
  t.teardown(() => {
    child.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  await until(async () => (await run(url(), 'select 1')).length === 1, 'the standby', 60_000)
  return { port, url }
}
