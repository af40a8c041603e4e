import { setTimeout as pause } from 'node:timers/promises'
import { t, type Test } from 'tap'
import { postgres } from '../helpers/backends.ts'
import {
  brokenOf,
  keepAlive,
  lostOf,
  send,
  startLoad,
  storedEvents,
} from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { postForm } from '../helpers/hooks.ts'
import { request } from '../helpers/http.ts'
import { noFailureIn, stallPostgres, startOn } from '../helpers/outages.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { follow } from '../helpers/replays.ts'
import { openStream, type StreamEvent } from '../helpers/sse.ts'
import { refuses } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const SENDERS = 4
/** More than there are connections for their statements. */
const STALLED_SENDERS = 16
/** Real senders give up after 10 s: they must have an answer before. */
const ANSWER_MS = 9_500
const REFUSED = { status: 503, type: 'application/problem+json', retryAfter: /^\d+$/ }
const PAGES = ['/', '/log', '/log/1', '/providers', '/settings']

const WITHOUT_NOTIFY = `
  insert into hooks.events (provider, trust, headers, payload, received_at)
  values ('code_host', 1, '[]', '', now())
  returning id`

const cluster = await ownPostgres(t)
const DOWN_MS = extent({ short: 5_000, long: 10_000 })

await t.test('PostgreSQL goes away for a while', async (t) => {
  const { env, sender, server, base } = await startOn(t, cluster)
  const live = follow(t, `${base}/events`)
  const load = startLoad(t, { base: () => base, sender, senders: SENDERS, restMs: 20 })
  await until(() => load.acked.length > 50 && live.ids.length > 50, 'the load to be under way')

  await cluster.stop('immediate')
  const stopped = performance.now()
  await until(() => load.refused.length > SENDERS, 'senders to be refused')
  await refusedWhileDown(t, base)
  const saysDown = ({ event, data }: StreamEvent) =>
    event === 'status' && JSON.parse(data).db === 'error'
  await until(
    () => live.connections > 1 || live.refused.length > 0 || live.events.some(saysDown),
    'the stream to say it, or to end',
  )
  t.same(load.unanswered, [], 'every sender had an answer')
  const ackedBefore = load.acked.length
  // Long enough for every timer of the program to find the database gone.
  await pause(Math.max(0, DOWN_MS - (performance.now() - stopped)))
  t.equal(load.acked.length, ackedBefore, 'nothing was acknowledged meanwhile')

  await cluster.start()
  await until(() => load.acked.length > ackedBefore + 50, 'deliveries to be accepted again')
  await until(async () => (await health(base)) === 200, 'health to be good again')
  for (const path of PAGES) {
    // The dashboard's numbers are up to a second old, and so is their absence.
    await until(async () => (await request(base + path)).status === 200, `${path} to be back`)
  }
  await load.stop()
  const [newest] = load.acked.map(({ id }) => id).toSorted((a, b) => b - a)
  await until(() => live.ids.at(-1) === newest, 'the stream to have the newest event')
  t.same(
    live.ids,
    [...new Set(live.ids)].toSorted((a, b) => a - b),
    'each once and in order',
  )
  t.notOk(live.events.some(({ event }) => event === 'gap'))

  for (const refused of load.refused) t.match(refused, REFUSED)
  const stored = await storedEvents(postgres, env)
  t.same(lostOf(load.acked, stored), [], `all of ${load.acked.length} are there`)
  t.same(brokenOf(load.sent, stored), [])
  const seen = new Set(live.ids)
  const unseen = load.acked.filter(({ id }) => !seen.has(id))
  t.same(unseen, [], 'the stream brought every acknowledged event')
  await followsAgain(t, base, env.DATABASE_URL)
  noFailureIn(t, server)
})

await t.test('PostgreSQL hangs for a while', async (t) => {
  const { env, sender, server, base } = await startOn(t, cluster)
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  const load = startLoad(t, {
    base: () => base,
    sender,
    senders: STALLED_SENDERS,
    timeoutMs: ANSWER_MS,
  })
  await until(() => load.acked.length > 50, 'the load to be under way')

  const goOn = await stallPostgres(t, cluster)
  const ackedBefore = load.acked.length
  // Two answers each: the second request starts while the first ones' statements hang.
  await until(
    () => load.refused.length >= 2 * STALLED_SENDERS,
    'every sender to be refused twice',
    25_000,
  )
  t.equal(await health(base), 503)
  t.equal((await request(`${base}/log`)).status, 503)
  for (const refused of load.refused) t.match(refused, REFUSED)
  t.same(load.unanswered, [], `every sender was answered within ${ANSWER_MS} ms`)

  goOn()
  await until(() => load.acked.length > ackedBefore + 50, 'deliveries to be accepted again')
  await until(async () => (await health(base)) === 200, 'good health')
  await load.stop()
  const newest = Math.max(...load.acked.map(({ id }) => id))
  await stream.until(({ id }) => id === String(newest), 'the newest event on the stream')
  const stored = await storedEvents(postgres, env)
  t.same(lostOf(load.acked, stored), [])
  t.same(brokenOf(load.sent, stored), [])
  noFailureIn(t, server)
})

await t.test('what no synchronous standby has confirmed is shown to nobody', async (t) => {
  const { env, base, sender } = await startOn(t, cluster)
  const agent = keepAlive(t, 3)
  const change = (text: string) => run(cluster.url(), text)
  await change("alter system set synchronous_standby_names = 'nobody'")
  await change('select pg_reload_conf()')
  // The server reads its settings some time later: until then a commit waits for nobody.
  const probes: Promise<unknown>[] = []
  const waits = "select 1 from pg_stat_activity where wait_event = 'SyncRep'"
  await until(async () => {
    probes.push(change(`create table probe_${probes.length} ()`))
    return (await change(waits)).length > 0
  }, 'commits to wait')
  const stream = follow(t, `${base}/events`)
  await until(() => stream.connections === 1, 'the stream')
  const delivery = await sender.delivery()
  t.equal((await send(agent, base, delivery)).status, 503, 'it waits for the standby')
  // The second one waits for the first, and is ended as all lost connections are.
  t.equal((await send(agent, base, await sender.delivery())).status, 503)
  const waiting = async (event: string) => {
    const text = `select 1 from pg_stat_activity
      where query like '%hooks.lock_log()%' and '${event}' in (wait_event, wait_event_type)`
    return (await run(env.DATABASE_URL, text)).length
  }
  await until(async () => (await waiting('Lock')) === 0, 'the end of the second')
  t.equal(await waiting('SyncRep'), 1, 'the first still waits')
  t.same(await run(env.DATABASE_URL, 'select id from hooks.events'), [])

  await change('alter system reset synchronous_standby_names')
  await change('select pg_reload_conf()')
  await Promise.all(probes)
  await until(() => stream.ids.length === 1, 'its event')
  const again = await send(agent, base, delivery)
  t.match(again, { status: 202 }, 'sent again by its sender')
  t.equal(JSON.parse(again.text).id, stream.ids[0], 'it is the same event')
  t.equal(await health(base), 200)
})

/** What a reader, an operator and a monitor get while there is no database. */
async function refusedWhileDown(t: Test, base: string) {
  for (const path of ['/healthz', ...PAGES]) {
    const answer = await request(base + path)
    refuses(t, answer, [503], path)
    t.match(answer.headers['retry-after'], /^\d+$/, path)
    t.match(answer.json(), { type: 'about:blank', instance: path }, path)
  }
  const page = await request(`${base}/log`, { headers: { Accept: 'text/html' } })
  t.match(page, { status: 503, headers: { 'content-type': /^text\/html/ } }, 'a browser')
  const head = await request(`${base}/healthz`, { method: 'HEAD' })
  t.equal(head.status, 503, 'HEAD')
  const form = await postForm(base, '/providers/code_host/enabled', { enabled: 'false' })
  t.equal(form.status, 503, 'a change')
}

/** New events reach the stream by NOTIFY, which is asked for again, and when one is missed by the poll. */
async function followsAgain(t: Test, base: string, url: string) {
  const listens = `select 1 from pg_stat_activity
    where datname = current_database() and query ilike 'listen %'`
  await until(async () => (await run(url, listens)).length > 0, 'the server to listen')
  const stream = await openStream(t, `${base}/events`)
  await stream.until(({ event }) => event === 'status')
  const [row] = await run(url, WITHOUT_NOTIFY)
  await stream.until(({ id }) => id === String(row?.['id']), 'an event that nobody told of')
}

async function health(base: string) {
  return (await request(`${base}/healthz`)).status
}
