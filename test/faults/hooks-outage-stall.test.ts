import { once } from 'node:events'
import * as http from 'node:http'
import { text } from 'node:stream/consumers'
import { t } from 'tap'
import { backends, connectionTo } from '../helpers/backends.ts'
import { runCli } from '../helpers/cli.ts'
import { request } from '../helpers/http.ts'
import { sharedPostgres } from '../helpers/postgres.ts'
import { secret } from '../helpers/secrets.ts'
import { addProvider, JSON_TYPE, post, startHooks } from '../helpers/hooks.ts'
import { until } from '../helpers/until.ts'

const [, server] = backends

await t.test('a database that hangs when it has refused a row', async (t) => {
  const { base, env } = await startHooks(t, server)
  await addProvider(base, 'any', { open: true })
  // A sequence counts tries: what it has given stays given when a statement fails.
  await server.query(env, 'create sequence hooks.hung')
  await server.query(
    env,
    `create function hooks.hang() returns trigger language plpgsql as $$
     begin
       perform nextval('hooks.hung') where new.event_type = 'hangs';
       perform pg_advisory_xact_lock(1) where new.event_type = 'waits';
       perform pg_sleep(60) where new.event_type = 'hangs';
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
  const send = (type: string) => post(base, 'generic/any', '{}', { 'X-Event-Type': type })
  const waiting = async () =>
    /^gatehouse_hooks_ingest_waiting (\d+)$/m.exec((await request(`${base}/metrics`)).text)?.[1]
  const sql = connectionTo(t, env)
  // The first statement waits until all others have come.
  const sent = await sql.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(1)`
    const first = send('waits')
    const waits = `select 1 from pg_stat_activity
      where wait_event = 'advisory' and datname = current_database()`
    await until(async () => (await server.query(env, waits)).length > 0, 'the first statement')
    const refused = send('refused')
    await until(async () => (await waiting()) === '1', 'the row to wait')
    const hanging = Array.from({ length: 5 }, () => send('hangs'))
    await until(async () => (await waiting()) === '6', 'the others to wait')
    return { first, refused, hanging }
  })
  t.equal((await sent.first).status, 202)
  t.equal((await sent.refused).status, 500)
  for (const { status } of await Promise.all(sent.hanging)) t.equal(status, 503)
  t.same(
    await server.query(env, 'select last_value::int as tried from hooks.hung'),
    [{ tried: 1 }],
    'one of them is tried: none waits for the deadline of another',
  )
})

await t.test('repeats of one delivery wait within the bound of all', async (t) => {
  const { base, env } = await startHooks(t, server)
  await addProvider(base, 'any', { open: true })
  const body = Buffer.alloc(4 * 1024 * 1024, 'x')
  const begun = Array.from({ length: 36 }, (_, n) => {
    const id = n % 9 === 0 ? `single ${n}` : 'repeated'
    const headers = { ...JSON_TYPE, 'Webhook-Id': id, 'Content-Length': body.length }
    const url = `${base}/webhooks/generic/any`
    return http.request(url, { method: 'POST', agent: false, headers })
  })
  // All but the last byte: a slow machine needs longer for them than a statement may wait.
  const written = begun.map(
    (delivery) => new Promise((resolve) => delivery.write(body.subarray(1), resolve)),
  )
  await Promise.all(written)
  const sql = connectionTo(t, env)
  let refused = 0
  const sent = begun.map(async (delivery) => {
    const [answer] = await once(delivery, 'response')
    if ((await text(answer)).includes('More is arriving than can be stored')) refused++
  })
  await sql.begin(async (tx) => {
    await tx`lock table hooks.events in access exclusive mode`
    for (const delivery of begun) delivery.end('x')
    await until(() => refused >= 4, 'those beyond 128 MiB to be refused')
  })
  await Promise.all(sent)
  t.ok(refused < 6, `${refused}, no others`)
  const later = await post(base, 'generic/any', body, { 'Webhook-Id': 'later' })
  t.equal(later.status, 202, 'there is room again')
})

await t.test('a start with a wrong password says so in one line', async (t) => {
  const url = new URL((await sharedPostgres()).url())
  url.password = secret('wrong-password')
  const started = await runCli(['serve', 'hooks'], {
    env: { DATABASE_URL: url.href, HOOKS_ADDR: '127.0.0.1:0' },
  })
  t.equal(started.code, 1)
  t.match(started.stderr, /^gatehouse: [^\n]*password authentication failed[^\n]*\n$/)
})
