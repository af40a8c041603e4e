import { t } from 'tap'
import { pruneUnderLoad } from '../fixtures/hooks-pruning.ts'
import { onPostgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { startServer } from '../helpers/server.ts'
import { addProvider, eventIds, postForm, startHooks, store } from '../helpers/hooks.ts'
import { openStream } from '../helpers/sse.ts'
import { until } from '../helpers/until.ts'

await onPostgres(t, 'what retention keeps', async (t, backend) => {
  const { env, server: first } = await startHooks(t, backend)
  let server = first
  await addProvider(server.hooks, 'lan', { open: true })
  const ids: number[] = []

  async function deliver(count: number) {
    for (let n = 0; n < count; n++) {
      ids.push(await store(server.hooks, 'lan'))
    }
  }
  /** Makes events older, from one position of `ids` up to another. */
  async function age(days: number, from: number, to: number) {
    const text = `update hooks.events set received_at = now() - $1::integer * interval '1 day'
                   where id between $2 and $3`
    await backend.query(env, text, [days, ids[from] ?? 0, ids[to - 1] ?? 0])
  }
  async function restart() {
    await server.stop()
    server = await startServer(t, { services: ['hooks'], env })
  }
  async function save(fields: Readonly<Record<string, string>>) {
    t.equal((await postForm(server.hooks, '/settings', fields)).status, 200)
  }
  /** Waits until exactly these events are left. */
  async function leaves(kept: readonly number[]) {
    const left = () => eventIds(server.hooks)
    await until(async () => (await left()).length <= kept.length, `${kept.length} to be left`)
    t.same(await left(), kept.toReversed())
  }
  /** The gap message for a client that resumes from `lastEventId`; undefined when there is no gap. */
  async function gapOf(lastEventId = 0) {
    const options = { lastEventId: String(lastEventId) }
    const stream = await openStream(t, `${server.hooks}/events`, options)
    // A gap is told before any event.
    const message = await stream.until(({ event }) => event !== 'status', 'a gap or an event')
    stream.close()
    return message.event === 'gap' ? JSON.parse(message.data) : undefined
  }

  await t.test('by age, when the server starts', async (t) => {
    await deliver(16)
    await age(40, 0, 4)
    await age(29, 4, 6)
    await restart()
    await leaves(ids.slice(4))
    const [requested = 0, oldest = 0] = [ids[1], ids[4]]
    const skipped = oldest - requested - 1
    t.same(await gapOf(requested), { requested, oldest, skipped })
    t.equal(await gapOf(ids[3]), undefined, 'none right above what was pruned')
  })

  await t.test('by age, when the setting changes', async () => {
    await age(21, 6, 7)
    await age(19, 7, 8)
    await save({ retention_max_age_days: '20' })
    await leaves(ids.slice(7))
  })

  await t.test('by number, the newest, when the setting changes', async () => {
    await save({ retention_max_rows: '5' })
    await leaves(ids.slice(-5))
  })

  await t.test('by number, when the server starts', async () => {
    await deliver(7)
    await leaves(ids.slice(-12))
    await restart()
    await leaves(ids.slice(-5))
  })

  await t.test('0 is no limit', async () => {
    await save({ retention_max_rows: '0', retention_max_age_days: '0' })
    await deliver(5)
    const kept = ids.slice(-10)
    await age(4_000, ids.length - 10, ids.length - 5)
    await age(5_000, ids.length - 10, ids.length - 8)
    await restart()
    // This run comes after that of the start, which would have removed all had there been a limit.
    await save({ retention_max_age_days: '4500' })
    await leaves(kept.slice(2))
  })

  await t.test('a gap is told also when nothing is left', async (t) => {
    await age(2, 0, ids.length)
    await save({ retention_max_age_days: '1' })
    await leaves([])
    const { text } = await request(`${server.hooks}/`)
    t.match(text, 'No events are kept at present.')
    t.notMatch(text, 'start-here')
    const [requested = 0, last = 0] = [ids.at(-3), ids.at(-1)]
    t.same(await gapOf(requested), { requested, oldest: last + 1, skipped: 2 })
    const upToDate = gapOf(last)
    await deliver(1)
    t.equal(await upToDate, undefined, 'none for a client that had seen the last one')
  })
})

// test/long/sizes.test.ts has more of everything.
await onPostgres(t, 'ingestion goes on while much is pruned', (t, backend) =>
  pruneUnderLoad(t, backend, { old: 3_000, clients: 4, behind: 300, deliveries: 40 }),
)
