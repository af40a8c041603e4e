import postgres from 'postgres'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import type { Row } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { brokenOf, lostOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { noFailureIn, startOnOwnPostgres } from '../helpers/outage-setup.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { freePort } from '../helpers/free-port.ts'
import type { Env } from '../helpers/program.ts'
import { secret } from '../helpers/secrets.ts'
import { addProvider, post, startHooks } from '../helpers/signing-setup.ts'
import { stallPostgres } from '../helpers/stalled-postgres.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends

/** Real senders give up after 10 s: they must have an answer before. */
const ANSWER_MS = 8_000
const REFUSED = { status: 503, type: 'application/problem+json', retryAfter: /^\d+$/ }

await t.test('PostgreSQL hangs for a while', async (t) => {
  const { cluster, env, sender, server, base } = await startOnOwnPostgres(t)
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  const load = startLoad(t, { base: () => base, sender, senders: 16, timeoutMs: ANSWER_MS })
  await until(() => load.acked.length > 200, 'the load to be under way')

  const goOn = await stallPostgres(t, cluster)
  const ackedBefore = load.acked.length
  // Two answers each: the second request starts while the first ones' statements hang.
  await until(() => load.refused.length >= 32, 'every sender to be refused twice', 25_000)
  const health = await request(`${base}/healthz`)
  t.equal(health.status, 503)
  t.equal(health.headers['content-type'], 'application/problem+json')
  t.equal((await request(`${base}/log`)).status, 503)
  for (const { status, type, retryAfter } of load.refused) {
    t.match({ status, type, retryAfter }, REFUSED)
  }
  t.same(load.unanswered, [], `every sender was answered within ${ANSWER_MS} ms`)

  goOn()
  await until(() => load.acked.length > ackedBefore + 100, 'deliveries to be accepted again')
  await until(async () => (await request(`${base}/healthz`)).status === 200, 'good health')
  await load.stop()
  const newest = Math.max(...load.acked.map(({ id }) => id))
  await stream.until(({ id }) => id === String(newest), 'the newest event on the stream')
  const query = (_env: Env, text: string): Promise<readonly Row[]> => run(env.DATABASE_URL, text)
  const stored = await storedEvents({ query }, env)
  t.same(lostOf(load.acked, stored), [])
  t.same(brokenOf(load.sent, stored), [])
  noFailureIn(t, server)
})

await t.test('a database that hangs when it has refused a row', async (t) => {
  const { base, env } = await startHooks(t, server)
  await addProvider(base, 'any', { open: true })
  await server.query(
    env,
    `create function hooks.hang() returns trigger language plpgsql as $$
     begin
       perform pg_sleep(case new.event_type when 'nap' then 1 when 'hangs' then 60 else 0 end);
       return new;
     end $$`,
  )
  await server.query(
    env,
    'create trigger hang before insert on hooks.events for each row execute function hooks.hang()',
  )
  await server.query(
    env,
    `alter table hooks.events add constraint refused check (event_type <> 'refused')`,
  )
  const send = (type: string): ReturnType<typeof post> =>
    post(base, 'generic/any', '{}', { 'X-Event-Type': type })
  const waiting = async (): Promise<string | undefined> =>
    /^gatehouse_hooks_ingest_waiting (\d+)$/m.exec((await request(`${base}/metrics`)).text)?.[1]
  const nap = send('nap')
  const naps = `select 1 from pg_stat_activity where wait_event = 'PgSleep'`
  await until(async () => (await server.query(env, naps)).length > 0, 'the first statement')
  const refused = send('refused')
  await until(async () => (await waiting()) === '1', 'the row to wait')
  const started = performance.now()
  const hanging = Array.from({ length: 5 }, () => send('hangs'))
  t.equal((await nap).status, 202)
  t.equal((await refused).status, 500)
  for (const { status } of await Promise.all(hanging)) t.equal(status, 503)
  t.ok(performance.now() - started < ANSWER_MS, 'none waits for the deadline of another')
})

await t.test('repeats of one delivery wait within the bound of all', async (t) => {
  const { base, env } = await startHooks(t, server)
  await addProvider(base, 'any', { open: true })
  const body = Buffer.alloc(1024 * 1024, 'x')
  const send = (id: string): ReturnType<typeof post> =>
    post(base, 'generic/any', body, { 'Webhook-Id': id })
  const sql = postgres(env['DATABASE_URL'] ?? '', { max: 1 })
  t.teardown(() => sql.end())
  let refused = 0
  const sent: Promise<void>[] = []
  await sql.begin(async (tx) => {
    await tx`lock table hooks.events in access exclusive mode`
    for (let n = 0; n < 200; n++) {
      const id = n % 2 === 0 ? 'repeated' : `single ${n}`
      sent.push(
        send(id).then(({ text }) => {
          if (text.includes('More is arriving than can be stored')) refused++
        }),
      )
    }
    await until(() => refused >= 60, 'those beyond 128 MiB to be refused')
  })
  await Promise.all(sent)
  t.ok(refused < 80, 'no others')
  t.equal((await send('later')).status, 202, 'there is room again')
})

await t.test('a start without a database says so in one line', async (t) => {
  const password = secret('unreachable-password')
  const port = await freePort()
  const url = `postgres://gatehouse:${password}@127.0.0.1:${port}/gatehouse`
  const started = await runCli(['serve', 'hooks'], {
    env: { DATABASE_URL: url, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(started.code, 1)
  t.equal(started.stdout, '', 'it was never ready')
  t.match(started.stderr, new RegExp(`^gatehouse: [^\\n]*127\\.0\\.0\\.1:${port}[^\\n]*\\n$`))
})

await t.test('a start with a wrong password says so in one line', async (t) => {
  const cluster = await ownPostgres(t)
  const url = new URL(cluster.url())
  url.password = secret('wrong-password')
  const started = await runCli(['serve', 'hooks'], {
    env: { DATABASE_URL: url.href, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(started.code, 1)
  t.match(started.stderr, /^gatehouse: [^\n]*password authentication failed[^\n]*\n$/)
})
