import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { check, runCli } from '../helpers/cli.ts'
import { createSender, lostOf, metricOf, sendAll, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { freePort, type Owner } from '../helpers/owner.ts'
import { clusterAccount, run } from '../helpers/postgres.ts'
import { ROOT, recordChild } from '../helpers/program.ts'
import { follow } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks, onPath } from '../runner/system-parts.ts'
import { openFolder } from './nginx.ts'

const skip = lacks(deploymentParts.pgbouncer)
const TRANSACTION = /pooler which gives a connection another session.*set pool_mode = session/

t.test('PgBouncer in session mode: as without it, also when it restarts', { skip }, async (t) => {
  const sender = createSender()
  const direct = { ...sender.env, ...(await postgres.env(t)) }
  const url = direct['DATABASE_URL'] ?? ''
  const pooler = await startPgBouncer(t, url)
  const env = { ...direct, DATABASE_URL: pooler.url }
  t.match((await check(env)).about('database'), ['ok '])
  const { hooks } = await startServer(t, { services: ['hooks'], env })
  const stream = follow(t, `${hooks}/events`)
  await until(() => stream.connections === 1, 'the stream')
  const listening = `select 1 from pg_stat_activity
    where query like 'listen %' and datname = current_database()`
  t.equal((await run(url, listening)).length, 1, 'by a session that stays')

  const acked = [...(await sendAll(t, [hooks], await sender.deliveries(50)))]
  await until(() => stream.ids.length === 50, 'the events')
  await pooler.restart()
  await until(async () => (await request(`${hooks}/healthz`)).status === 200, 'the database')
  acked.push(...(await sendAll(t, [hooks], await sender.deliveries(50))))
  await until(() => stream.ids.length === 100, 'all events')
  t.same(new Set(stream.ids), new Set(acked.map(({ id }) => id)))
  t.same(lostOf(acked, await storedEvents(postgres, direct)), [])
  const { text } = await request(`${hooks}/metrics`)
  t.equal(metricOf(text, 'gatehouse_hooks_stream_clients'), 1)
})

t.test('PgBouncer in another mode is refused', { skip }, async (t) => {
  const { DATABASE_URL: direct = '' } = await postgres.env(t)
  // By its newest free session, and by its oldest one.
  for (const server_round_robin of ['0', '1']) {
    const { url } = await startPgBouncer(t, direct, {
      pool_mode: 'transaction',
      server_round_robin,
    })
    const env = { DATABASE_URL: url }
    const serve = await runCli('serve hooks', { env })
    t.match(serve, { code: 1, stdout: '', stderr: TRANSACTION }, server_round_robin)
    t.equal(serve.stderr.trim().split('\n').length, 1, 'one line')
    t.match(await runCli('check', { env }), { code: 1, stdout: TRANSACTION })
  }
})

t.test('PgBouncer that refuses settings: what it needs is said', { skip }, async (t) => {
  const { DATABASE_URL: direct = '' } = await postgres.env(t)
  const { url } = await startPgBouncer(t, direct, { ignore_startup_parameters: '' })
  const result = await runCli('migrate', { env: { DATABASE_URL: url } })
  t.match(result, {
    code: 1,
    stderr: /unsupported startup parameter: \w+ \(PgBouncer needs ignore_startup_parameters, see/,
  })
})

/**
 * Starts PgBouncer with `deploy/cluster/pgbouncer.ini` in front of a database. Only addresses, the file of
 * passwords and what `changes` names are other ones. It ends with the test.
 */
async function startPgBouncer(
  t: Owner,
  database: string,
  changes: Readonly<Record<string, string>> = {},
) {
  const { hostname, port: serverPort, username, password, pathname } = new URL(database)
  const [folder, port] = [openFolder(t), await freePort()]
  const file = join(folder, 'pgbouncer.ini')
  const users = join(folder, 'userlist.txt')
  writeFileSync(users, `"${username}" "${password}"\n`)
  let text = readFileSync(join(ROOT, 'deploy/cluster/pgbouncer.ini'), 'utf8').replace(
    /^gatehouse = .*$/m,
    `${pathname.slice(1)} = host=${hostname} port=${serverPort}`,
  )
  const own = { listen_port: String(port), auth_file: users, unix_socket_dir: '', ...changes }
  for (const [name, value] of Object.entries(own)) {
    const line = `${name} = ${value}`
    const pattern = new RegExp(`^${name} = .*$`, 'm')
    text = pattern.test(text) ? text.replace(pattern, line) : `${text}${line}\n`
  }
  writeFileSync(file, text)
  for (const path of [folder, file, users]) chmodSync(path, 0o755)

  const start = () => startProcess(folder, file, port)
  let child = await start()
  async function end() {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    await exit
  }
  t.teardown(end)
  const url = new URL(database)
  url.port = String(port)
  return {
    url: url.href,
    /** Ends it and starts it again on the same port. */
    async restart() {
      await end()
      child = await start()
    },
  }
}

async function startProcess(folder: string, file: string, port: number) {
  const log = openSync(join(folder, 'log'), 'a')
  // It refuses root.
  const child = spawn(onPath('pgbouncer') ?? '', [file], {
    ...clusterAccount(),
    stdio: ['ignore', log, log],
  })
  closeSync(log)
  recordChild(child)
  await until(async () => {
    if (child.exitCode !== null) return 'ended'
    const socket = connect(port, '127.0.0.1')
    const accepted = await once(socket, 'connect').then(
      () => true,
      () => false,
    )
    socket.destroy()
    return accepted
  }, 'PgBouncer to accept connections')
  if (child.exitCode !== null) throw new Error(readFileSync(join(folder, 'log'), 'utf8'))
  return child
}
