import { t } from 'tap'
import { onPostgres, postgres } from '../helpers/backends.ts'
import { metricOf } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { postForm } from '../helpers/hooks.ts'
import { request as ask } from '../helpers/http.ts'
import { anonymousKib } from '../helpers/process-figures.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { startServer } from '../helpers/server.ts'
import { openStream, type EventStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

const CLIENTS = 'gatehouse_hooks_stream_clients'
const CUT_OFF = 'gatehouse_hooks_stream_cut_off_total'

/** Inserts this many events of a type, and notifies a running server. */
const INSERT = `
  with made as (
    insert into hooks.events
      (provider, trust, event_type, headers, payload, received_at)
    select 'code_host', 1, $1, '[]', '', now()
      from generate_series(1, $2::int)
    returning id)
  select id, pg_notify('hooks_events', (max(id) over ())::text)::text from made order by id`

await onPostgres(t, 'what cannot be replayed is told', async (t, backend) => {
  const env = await backend.env(t)
  const rows = await backend.query(env, INSERT, ['push', 1_205])
  const ids = rows.map(({ id }) => Number(id))
  const { hooks: base } = await startServer(t, { services: ['hooks'], env })
  const last = ids.at(-1)

  async function resume(at: number) {
    const stream = await openStream(t, `${base}/events`, { lastEventId: String(at) })
    await stream.until(({ id }) => id === String(last), 'the newest event')
    await stream.until(({ event }) => event === 'status')
    stream.close()
    return stream
  }

  const exactly = await resume(ids[204] ?? 0)
  t.same(gapsOf(exactly), [], '1,000 missed events are replayed')
  t.same(seenBy(exactly), ids.slice(205))

  for (const at of [ids[203] ?? 0, 0]) {
    const stream = await resume(at)
    const oldest = ids[205] ?? 0
    t.same(gapsOf(stream), [{ requested: at, oldest, skipped: oldest - at - 1 }], `from ${at}`)
    t.same(seenBy(stream), ids.slice(205))
    t.equal(stream.events.find(({ event }) => event === 'gap')?.id, undefined, 'moves nobody')
    const kinds = stream.events.map(({ event }) => event).filter((event) => event !== 'status')
    t.equal(kinds[0], 'gap', 'told before the replay')
  }

  const settings = await postForm(base, '/settings', { retention_max_rows: '100' })
  t.equal(settings.status, 200)
  const [before, kept = 0] = [ids[1_000] ?? 0, ids[1_105]]
  const pruned = await until(async () => {
    const stream = await resume(before)
    return seenBy(stream)[0] === kept && stream
  }, 'retention to be done')
  t.same(gapsOf(pruned), [{ requested: before, oldest: kept, skipped: kept - before - 1 }])
  t.same(seenBy(pruned), ids.slice(1_105))
  t.same(gapsOf(await resume(ids[1_150] ?? 0)), [], 'no gap above what was pruned')
})

// Frames of about 700 bytes: 255 characters that take two bytes each.
const LONG_TYPE = '\u00e9'.repeat(255)
const IDLERS = extent({ short: 1, long: 5 })
const MOST_EVENTS = 40_000
/**
 * How much the process may grow meanwhile. Each client that does not read may leave 1 MiB unsent, the
 * rest is room for the traffic itself: batches and what is collected late.
 */
const GROWTH_KIB = 32 * IDLERS * 1024

await t.test('a client that never reads is cut off, and nobody else notices', async (t) => {
  const env = await postgres.env(t)
  const server = await startServerProcess(t, { services: ['hooks'], env })
  const base = server.hooks
  const metric = async (name: string) => metricOf((await ask(`${base}/metrics`)).text, name) ?? 0
  const reader = await openStream(t, `${base}/events`)
  await reader.until(({ event }) => event === 'status')
  const ids: number[] = []
  async function bring() {
    const rows = await postgres.query(env, INSERT, [LONG_TYPE, 1_000])
    ids.push(...rows.map(({ id }) => Number(id)))
    const last = String(ids.at(-1))
    await until(() => reader.lastEventId === last, 'the reader to have read', 20_000)
  }

  // The process's own needs under this traffic come first: they are not what is measured.
  await bring()
  const already = ids.length
  const idlers: EventStream[] = []
  for (let n = 0; n < IDLERS; n++) {
    const idler = await openStream(t, `${base}/events`)
    await idler.until(({ event }) => event === 'status')
    idler.pause()
    idlers.push(idler)
  }
  const start = anonymousKib(server.pid)
  while ((await metric(CUT_OFF)) < IDLERS && ids.length < MOST_EVENTS) await bring()
  t.equal(await metric(CUT_OFF), IDLERS, 'each of them is counted')
  await until(async () => (await metric(CLIENTS)) === 1, 'the reader alone to be left')
  t.same(seenBy(reader), ids, 'and has read everything once')
  const grown = anonymousKib(server.pid) - start
  t.ok(grown < GROWTH_KIB, `${grown} KiB more than before ${ids.length - already} events`)

  const [idler] = idlers
  if (idler === undefined) return
  idler.resume()
  await idler.closed
  const seen = seenBy(idler)
  t.same(seen, ids.slice(already, already + seen.length), 'what it was sent is whole')
  const back = await openStream(t, `${base}/events`, { lastEventId: String(seen.at(-1) ?? 0) })
  await back.until(({ id }) => id === String(ids.at(-1)), 'the newest event')
  const [gap] = gapsOf(back)
  t.equal(gap?.requested, seen.at(-1))
  t.equal(gap?.oldest, ids.at(-1_000))
  t.same(seenBy(back), ids.slice(-1_000))
})

function seenBy(stream: EventStream) {
  return stream.events
    .filter(({ event }) => event === 'event-received')
    .map(({ id }) => Number(id))
}

type Gap = { requested: number; oldest: number; skipped: number }

function gapsOf(stream: EventStream) {
  return stream.events
    .filter(({ event }) => event === 'gap')
    .map(({ data }): Gap => JSON.parse(data))
}
