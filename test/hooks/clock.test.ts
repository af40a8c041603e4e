import { t } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { check } from '../helpers/cli.ts'
import { addProvider, eventIds, post, postForm, startHooks, type Ack } from '../helpers/hooks.ts'
import { expectStatus } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const DAY_MS = 86_400_000

await onPostgres(t, 'a clock that was ahead or behind', async (t, backend) => {
  const { env, server } = await startHooks(t, backend)
  const base = server.hooks
  await addProvider(base, 'lan', { open: true })

  async function deliver() {
    return (await post(base, 'generic/lan', '{}')).json<Ack>()
  }
  /** The newest event came while the clock was ahead by that much, or behind. */
  async function newestCame(ahead: string) {
    const text = `update hooks.events set received_at = now() + interval '${ahead}'
                   where id = (select max(id) from hooks.events) returning received_at`
    const [row] = await backend.query(env, text)
    return (row as { received_at: Date }).received_at.toISOString()
  }
  function steps() {
    const lines = server.logs().filter((line) => line.includes('clock set back'))
    return lines.map((line) => JSON.parse(line))
  }
  const api = apiOf(base)
  async function found(query: string) {
    const { json } = await api<{ events: readonly { id: number }[] }>('GET', `/events?${query}`)
    return json.events.map(({ id }) => id)
  }

  const { id: old } = await deliver()
  await newestCame('-20 days')
  const { id: yesterday } = await deliver()
  await newestCame('-1 day')

  await t.test('a clock that is seconds behind is waited for', async (t) => {
    const { id } = await deliver()
    // Where this takes longer, the clock may have caught up.
    const { ahead, next } = await until(async () => {
      const begin = performance.now()
      const ahead = await newestCame('4 seconds')
      const next = await deliver()
      return performance.now() - begin < 3_000 && { ahead, next }
    }, 'a delivery within 3 s')
    t.equal(next.received_at, ahead)
    t.same(steps(), [])
    await backend.query(env, `delete from hooks.events where id >= ${id}`)
  })

  const { id: ahead } = await deliver()
  await newestCame('1 year')

  await t.test('a larger step back is believed, and told once', async (t) => {
    const { id, received_at } = await deliver()
    t.ok(Math.abs(Date.parse(received_at) - Date.now()) < DAY_MS, received_at)
    await deliver()
    t.match(steps(), [{ level: 'warn', event: id, set_back_s: Number }])
  })

  const { id: behind } = await deliver()
  await newestCame('-9 years')
  // As lock_log() would have noted it.
  await backend.query(env, `insert into hooks.clock_steps values (${behind}, 284000000)`)
  const { id: newest } = await deliver()

  await t.test('lists keep the order of ids, and times are found', async (t) => {
    const ids = await eventIds(base)
    t.same(
      ids,
      ids.toSorted((a, b) => b - a),
    )
    const since = new Date(Date.now() - 2 * DAY_MS).toISOString()
    t.same(await found(`since=${since}`), ids.slice(0, -1), 'from yesterday on')
    t.same(await found(`until=${since}`), [old])
  })

  await t.test('retention removes what is old, and nothing younger beside it', async (t) => {
    const ids = await eventIds(base)
    const save = (days: string) => postForm(base, '/settings', { retention_max_age_days: days })
    await expectStatus(200, save('10'))
    await until(async () => (await eventIds(base)).length < ids.length, 'the old event to go')
    t.same(await eventIds(base), ids.slice(0, -1))
    t.equal((await eventIds(base)).at(-1), yesterday)
    const first = ids.indexOf(ahead)
    await backend.query(
      env,
      `update hooks.events set received_at = now() - interval '12 days'
        where id <> ${ahead} and id < ${newest}`,
    )
    await expectStatus(200, save('11'))
    await until(async () => (await eventIds(base)).length < first, 'those before to go')
    t.same(await eventIds(base), [newest], 'a time to come keeps nothing')
    const [left] = await backend.query(env, 'select count(*)::integer as n from hooks.clock_steps')
    t.same(left, { n: 0 })
  })

  await t.test('retention keeps what came just before the clock was set back', async (t) => {
    await newestCame('-12 days')
    const { id: before } = await deliver()
    await newestCame('3 hours')
    const { id: after } = await deliver()
    await expectStatus(200, postForm(base, '/settings', { retention_max_age_days: '11' }))
    await until(async () => (await eventIds(base)).length < 3, 'the old event to go')
    t.same(await eventIds(base), [after, before])
  })

  await t.test('check names an event from a time to come', async (t) => {
    await newestCame('90 years')
    const [newest] = await eventIds(base)
    await deliver()
    const { code, about } = await check(env)
    t.equal(code, 0)
    const warned = new RegExp(
      `^warn event ${newest} has a time to come, 2\\d{3}-.+: the database's`,
    )
    t.match(about('clock'), [/^ok/, warned])
  })
})
