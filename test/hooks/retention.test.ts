import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { createSender, lostOf, sendAll, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import type { Env } from '../helpers/program.ts'
import { startServer } from '../helpers/server.ts'
import type { TestServer } from '../helpers/server.ts'
import { openStream } from '../helpers/sse.ts'
import type { StreamEvent } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

type Gap = { requested: number; oldest: number; skipped: number }

await eachBackend(t, 'what retention keeps', async (t: Test, backend) => {
  const sender = createSender()
  const env = { ...(await backend.env(t)), ...sender.env }
  let server = await startServer(t, { services: ['hooks'], env })
  const ids: number[] = []
  async function deliver(count: number): Promise<void> {
    const acked = await sendAll(t, [server.hooks], await sender.deliveries(count), 4)
    ids.push(...acked.map(({ id }) => id).toSorted((a, b) => a - b))
  }
  /** Makes events older while no server runs, from one position of `ids` up to another. */
  async function restartAfter(days: number, from: number, to: number): Promise<void> {
    await server.stop()
    const text = `update hooks.events set received_at = now() - $1::integer * interval '1 day'
                   where id between $2 and $3`
    await backend.query(env, text, [days, ids[from] ?? 0, ids[to - 1] ?? 0])
    server = await startServer(t, { services: ['hooks'], env })
  }
  const save = (body: string): Promise<void> => saveSettings(t, server, body)
  const leaves = (kept: readonly number[]): Promise<void> => leftIn(t, server, ids, kept)

  await t.test('by age, when the server starts', async (t) => {
    await deliver(60)
    await restartAfter(40, 0, 20)
    await leaves(ids.slice(20))
    const [requested, oldest] = [ids[9] ?? 0, ids[20] ?? 0]
    t.same(await gapOf(t, server, requested), {
      requested,
      oldest,
      skipped: oldest - requested - 1,
    })
    t.equal(await gapOf(t, server, ids[19] ?? 0), undefined, 'none right above what was pruned')
  })

  await t.test('by age, when the setting changes', async () => {
    await restartAfter(25, 20, 30)
    await leaves(ids.slice(20))
    await save('retention_max_age_days=20')
    await leaves(ids.slice(30))
  })

  await t.test('by number, the newest, when the setting changes', async (t) => {
    await save('retention_max_rows=5')
    await leaves(ids.slice(-5))
    const [requested, oldest] = [ids[0] ?? 0, ids.at(-5) ?? 0]
    t.same(await gapOf(t, server, requested), {
      requested,
      oldest,
      skipped: oldest - requested - 1,
    })
  })

  await t.test('by number, when the server starts', async () => {
    await deliver(7)
    await leaves(ids.slice(-12))
    await restartAfter(0, 0, 0)
    await leaves(ids.slice(-5))
  })

  await t.test('0 is no limit', async () => {
    await save('retention_max_rows=0&retention_max_age_days=0')
    await deliver(20)
    const kept = ids.slice(-25)
    await restartAfter(4_000, ids.length - 25, ids.length - 5)
    await restartAfter(5_000, ids.length - 25, ids.length - 23)
    // This run comes after those of the two starts, which had all to remove had there been a limit.
    await save('retention_max_age_days=4500')
    await leaves(kept.slice(2))
  })

  await t.test('a gap is told also when nothing is left', async (t) => {
    await restartAfter(2, 0, ids.length)
    await save('retention_max_age_days=1')
    await leaves([])
    const [requested, oldest] = [ids.at(-3) ?? 0, (ids.at(-1) ?? 0) + 1]
    t.same(await gapOf(t, server, requested), { requested, oldest, skipped: 2 })
    const upToDate = gapOf(t, server, ids.at(-1) ?? 0)
    await deliver(1)
    t.equal(await upToDate, undefined, 'none for a client that had seen the last one')
  })
})

const OLD = 20_000
const OLD_EVENTS = `
  insert into hooks.events (provider, event_type, trust_mode, verified, headers, payload, body_hash,
                            received_at)
  select 'code_host', 'old', 'signed', true, '{}', convert_to(n::text, 'UTF8'), sha256(''),
         now() - interval '100 days' + n * interval '1 second'
    from generate_series(1, $1::integer) as n`

for (const backend of backends) {
  await t.test(`ingestion goes on while much is pruned (${backend.name})`, async (t) => {
    const sender = createSender()
    const env = { ...(await backend.env(t)), ...sender.env }
    const first = await startServer(t, { services: ['hooks'], env })
    await first.stop()
    await backend.query(env, OLD_EVENTS, [OLD])
    const server = await startServer(t, { services: ['hooks'], env })
    const load = startLoad(t, { base: () => server.hooks, sender, senders: 4 })
    await until(() => load.acked.length > 0, 'the first delivery')
    let done = false
    const clients = Array.from({ length: 12 }, () => resumeWhile(t, server, () => !done))
    const resuming = Promise.all(clients)
    const counts = new Set<number>()
    if (backend.name === 'postgres') {
      await until(async () => {
        const left = await countOld(env)
        counts.add(left)
        return left === 0
      }, 'everything old to be removed')
      const between = [...counts].filter((count) => count > 0 && count < OLD)
      t.ok(between.length > 0, `in steps: ${between.join(' ')}`)
      t.same(
        between.filter((count) => count % 500 > 0),
        [],
        'of 500 each',
      )
    } else {
      const page = `${server.hooks}/log/${OLD}`
      await until(
        async () => (await request(page)).status === 404,
        'the last old one to go',
        30_000,
      )
    }
    await until(() => load.acked.length > 100, 'deliveries to go on')
    done = true
    t.same((await resuming).flat(), [], 'whoever resumed meanwhile was sent or told everything')
    await load.stop()
    t.same([...load.refused, ...load.unanswered], [], 'every delivery was accepted')
    await server.stop()
    const stored = await storedEvents(backend, env)
    t.same(lostOf(load.acked, stored), [])
    t.equal(stored.size, load.acked.length, 'nothing old is left')
  })
}

/**
 * Resumes again and again among the old events that are being removed, and gives what was neither
 * sent nor told of as a gap.
 */
async function resumeWhile(
  t: Test,
  { hooks }: TestServer,
  goesOn: () => boolean,
): Promise<readonly string[]> {
  const missing: string[] = []
  while (goesOn()) {
    let position = OLD - 800
    const stream = await openStream(t, `${hooks}/events`, { lastEventId: String(position) })
    const newEvent = ({ id }: StreamEvent): boolean => Number(id) > OLD
    await stream.until(newEvent, 'a new event', 20_000)
    stream.close()
    for (const { event, id, data } of stream.events) {
      if (event === 'status') continue
      const gap: Gap | undefined = event === 'gap' ? JSON.parse(data) : undefined
      const from = gap === undefined ? Number(id) - 1 : gap.requested
      if (from !== position) missing.push(`${event} from ${from}, expected ${position}`)
      position = gap === undefined ? Number(id) : gap.oldest - 1
    }
  }
  return missing
}

async function countOld(env: Env): Promise<number> {
  const [, postgres] = backends
  const text = `select count(*)::integer as n from hooks.events where event_type = 'old'`
  const [row] = await postgres.query(env, text)
  return Number(row?.['n'])
}

async function saveSettings(t: Test, server: TestServer, body: string): Promise<void> {
  const answer = await request(`${server.hooks}/settings`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body,
  })
  t.equal(answer.status, 200, body)
}

/** Waits until exactly `kept` of `ids` can be looked at. */
async function leftIn(
  t: Test,
  { hooks }: TestServer,
  ids: readonly number[],
  kept: readonly number[],
): Promise<void> {
  const present = async (): Promise<readonly number[]> => {
    const found: number[] = []
    for (const id of ids) if ((await request(`${hooks}/log/${id}`)).status === 200) found.push(id)
    return found
  }
  await until(async () => (await present()).length <= kept.length, `${kept.length} to be left`)
  t.same(await present(), kept)
}

/** The gap that a client is told of that saw `lastEventId` last; undefined when there is none. */
async function gapOf(
  t: Test,
  { hooks }: TestServer,
  lastEventId: number,
): Promise<Gap | undefined> {
  const stream = await openStream(t, `${hooks}/events`, { lastEventId: String(lastEventId) })
  // A gap is told before any event.
  const first = await stream.until(({ event }) => event !== 'status', 'a gap or an event')
  stream.close()
  return first.event === 'gap' ? JSON.parse(first.data) : undefined
}
