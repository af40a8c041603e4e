import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { createSender, lostOf, metricOf, sendAll, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { run } from '../helpers/postgres.ts'
import { follow } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'
import { deploymentParts, lacks } from '../runner/system-parts.ts'
import { startPgBouncer } from './pgbouncer.ts'

const [, postgres] = backends
const skip = lacks(deploymentParts.pgbouncer)
const TRANSACTION = /pooler which gives a connection another session.*set pool_mode = session/

t.test('PgBouncer in session mode: as without it, also when it restarts', { skip }, async (t) => {
  const sender = createSender()
  const direct = { ...sender.env, ...(await postgres.env(t)) }
  const url = direct['DATABASE_URL'] ?? ''
  const pooler = await startPgBouncer(t, url)
  const env = { ...direct, DATABASE_URL: pooler.url }
  const check = await runCli(['check', '--json'], { env })
  t.match(check, { stdout: /"what":"database","level":"ok"|"level":"ok","what":"database"/ })
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

for (const pool_mode of ['transaction', 'statement']) {
  for (const server_round_robin of ['0', '1']) {
    const name = `PgBouncer in ${pool_mode} mode is refused (server_round_robin ${server_round_robin})`
    t.test(name, { skip }, async (t) => {
      const { DATABASE_URL: direct = '' } = await postgres.env(t)
      const { url } = await startPgBouncer(t, direct, { pool_mode, server_round_robin })
      const env = { DATABASE_URL: url }
      const serve = await runCli(['serve', 'hooks'], { env })
      t.match(serve, { code: 1, stdout: '', stderr: TRANSACTION })
      t.equal(serve.stderr.trim().split('\n').length, 1, 'one line')
      t.match(await runCli(['migrate'], { env }), { code: 1, stderr: TRANSACTION })
      t.match(await runCli(['check'], { env }), { code: 1, stdout: TRANSACTION })
    })
  }
}

t.test('PgBouncer that refuses settings: what it needs is said', { skip }, async (t) => {
  const { DATABASE_URL: direct = '' } = await postgres.env(t)
  const { url } = await startPgBouncer(t, direct, { ignore_startup_parameters: '' })
  const result = await runCli(['migrate'], { env: { DATABASE_URL: url } })
  t.match(result, {
    code: 1,
    stderr: /unsupported startup parameter: \w+ \(PgBouncer needs ignore_startup_parameters, see/,
  })
})
