import { createServer } from 'node:net'
import { t } from 'tap'
import { createMetrics } from '../../../kernel/metrics.ts'
import type { Check } from '../../../services/ops/watch/checks/run.ts'
import { startCheckLoop, type CheckLoop } from '../../../services/ops/watch/checks/loop.ts'
import { createRedact } from '../../../services/ops/redact.ts'
import type { Owner } from '../../helpers/owner.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { openTimed } from '../../helpers/timed.ts'
import { until } from '../../helpers/until.ts'
import { listen } from '../../helpers/listen.ts'

const HOUR_S = 3_600

/** Instances that check the same inventory at a time that the test decides. */
type Checked = Awaited<ReturnType<typeof openChecked>>

/** Opens a database and its instances, whose inventory has these checks of a service `shop`. */
async function openChecked(t: Owner, checksOf: (url: string) => readonly Check[]) {
  let status: number | undefined = 200
  let asked = 0
  const { url } = await startReceiver(t, (_, response) => {
    asked++
    if (status === undefined) response.destroy()
    else response.writeHead(status).end()
  })
  let checks = [...checksOf(url)]
  const timed = await openTimed(t, 'checks')
  const { db, clock, log, query, later } = timed
  const loops = new Set<CheckLoop>()
  t.teardown(async () => {
    for (const loop of loops) await loop.close()
  })
  /** Makes rounds until nothing is due and all that was found is stored. */
  async function settle() {
    const now = clock.now().toISOString()
    await until(async () => {
      for (const loop of loops) await loop.round()
      if (!timed.isReached()) return true
      const [left] = await query(
        `select count(*)::integer as count from ops.checks
          where removed_at is null and (next_at <= '${now}' or claimed_until > '${now}')`,
      )
      return left?.['count'] === 0
    }, 'all that is due to be looked at')
  }
  return Object.assign(timed, {
    /** What the service answers from now on; undefined: it refuses connections. */
    answer: (next: number | undefined) => void (status = next),
    /** How often the service was asked so far. */
    asked: () => asked,
    /** Starts another instance. */
    open() {
      const inventory = { current: async () => ({ services: [{ name: 'shop', checks }] }) }
      const metrics = createMetrics()
      const redact = createRedact(() => [])
      const loop = startCheckLoop({ db, clock, log, metrics, inventory, redact })
      loops.add(loop)
      return loop
    },
    /** The inventory has these checks from now on. */
    list: (next: readonly Check[]) => void (checks = [...next]),
    /** Stops an instance. */
    async close(loop: CheckLoop) {
      loops.delete(loop)
      await loop.close()
    },
    /** Lets time pass, in steps, at each of which all that is due is looked at. */
    async pass(seconds: number, step = 60) {
      for (let passed = 0; passed < seconds; passed += step) {
        later(step)
        await settle()
      }
    },
  })
}

/** The states that a check had, oldest first, without the first one. */
async function statesOf({ query }: Checked, name = 'front') {
  const rows = await query(
    `select p.state from ops.check_periods p join ops.checks c on c.id = p.check_id
      where c.name = '${name}' order by p.id`,
  )
  return rows.slice(1).map(({ state }) => state)
}

/** The messages of all events, oldest first, and whether a notice was made of each. */
async function toldBy({ query }: Checked) {
  const rows = await query(
    `select e.message, exists (select from notices.notices n
                                where n.message = e.message and n.created_at = e.created_at) as notified
       from ops.events e order by e.id`,
  )
  return rows.map(({ message, notified }) => `${notified ? 'told: ' : ''}${String(message)}`)
}

/** A check of the service. */
function front(url: string, more: Partial<Check> = {}) {
  return { type: 'http', name: 'front', url, ...more } as Check
}

/** An instance with this check alone. */
async function openFront(t: Owner, more: Partial<Check> = {}) {
  const shop = await openChecked(t, (url) => [front(url, more)])
  shop.open()
  return shop
}

const FAILURE = 'front: answered 503, expected 200 to 399'

await t.test('an outage of the database, and one of the server', async (t) => {
  const every = '5m'
  const shop = await openChecked(t, (url) => [
    front(url, { every }),
    { type: 'disk', name: 'disk', path: '/', max_percent: 100, every },
  ])
  const first = shop.open()
  await shop.pass(HOUR_S, 150)
  t.same(await toldBy(shop), [], 'what is well needs no word')

  // While the database is away nothing can be told; the state at its return counts.
  shop.reach(false)
  await shop.pass(600, 150)
  t.match(first.problem(), /^no check has run for \d+ s$/)
  shop.answer(undefined)
  await shop.pass(HOUR_S, 150)
  shop.reach(true)
  await shop.pass(HOUR_S, 150)
  t.equal(first.problem(), undefined)
  t.equal(shop.logged().split('checks do not run').length, 2, 'it is logged once')
  shop.answer(200)
  await shop.pass(HOUR_S, 150)

  await shop.close(first)
  shop.answer(503)
  shop.later(3 * HOUR_S)
  const before = shop.asked()
  const second = shop.open()
  await shop.pass(10, 10)
  t.equal(shop.asked() - before, 1, 'what was due for hours is looked at once')
  t.equal(second.problem(), undefined, 'a stop is no delay')
  await shop.pass(HOUR_S, 150)
  t.same(await statesOf(shop), ['fail', 'ok', 'fail'])
  t.same(await statesOf(shop, 'disk'), [], 'the other check knows nothing of it')

  const told = await toldBy(shop)
  t.match(told, [
    /^told: front: connection reset|^told: front: .*closed/,
    'told: front is good again: answered 200',
    `told: ${FAILURE}`,
  ])
  t.equal(told.length, 3, 'each beginning and each end is told once')
  const [sums] = await shop.query(
    `select (select count(*) from ops.check_results) = sum(runs) as every_result_counts
       from ops.check_counts where span = 'day'`,
  )
  t.same(sums, { every_result_counts: true })
})

await t.test('instances share the checks', async (t) => {
  const names = Array.from({ length: 40 }, (_, at) => `page ${at}`)
  const shop = await openChecked(t, (url) => names.map((name) => front(url, { name })))
  for (let instance = 0; instance < 3; instance++) shop.open()
  await shop.pass(1, 1)
  t.equal(shop.asked(), 40, 'each check is looked at by one of them')
  await shop.pass(120, 10)
  t.equal(shop.asked(), 40 * 3, 'and once in each minute')
  const [spread] = await shop.query(
    `select count(distinct next_at)::integer as moments from ops.checks`,
  )
  t.ok(Number(spread?.['moments']) > 20, 'they are spread over their minute')
})

await t.test('two hundred checks that hang hold up no other one', async (t) => {
  const silent = createServer((socket) => void socket.resume())
  const port = await listen(t, silent)
  const hung = Array.from({ length: 200 }, (_, at) => ({
    ...({ type: 'tcp', name: `hung ${at}`, host: '127.0.0.1', port, contains: 'x' } as const),
    timeout_s: 60,
    every: '10s',
  }))
  const shop = await openChecked(t, (url) => [...hung, front(url, { every: '10s' })])
  const loop = shop.open()
  /** Waits until the check that does not hang has been looked at so often, and that is stored. */
  const looked = async (times: number) => {
    const isStored = async () => {
      await loop.round()
      const [row] = await shop.query('select count(*)::integer as count from ops.check_results')
      return row?.['count'] === times
    }
    await until(isStored, `look ${times}`)
  }
  for (let times = 1; times <= 4; times++) {
    await looked(times)
    shop.later(10)
  }
  await looked(5)
  const [held] = await shop.query(
    `select count(*)::integer as count from ops.checks where claimed_until is not null`,
  )
  t.equal(shop.asked(), 5)
  t.same(held, { count: 200 }, 'none of the others has ended')
})

await t.test('a run during which the machine slept runs again', async (t) => {
  let asked = 0
  const { url } = await startReceiver(t, (_, response) => {
    asked++
    // The lid was closed for a minute and a half.
    if (asked === 1) shop.later(90)
    response.writeHead(asked === 1 ? 503 : 200).end()
  })
  const shop = await openChecked(t, () => [front(url, { retries: 0 })])
  shop.open()
  await shop.pass(1, 1)
  t.ok(asked >= 2)
  t.same(await toldBy(shop), [], 'nobody is told')
})

await t.test('a check that fails is looked at again before that counts', async (t) => {
  const shop = await openFront(t, { retries: 2 })
  await shop.pass(60)
  shop.answer(503)
  await shop.pass(60)
  t.same(await statesOf(shop), [], 'the first time')
  const before = shop.asked()
  await shop.pass(10, 10)
  t.equal(shop.asked(), before + 1, 'it is looked at again after ten seconds')
  t.same(await statesOf(shop), [])
  shop.answer(200)
  await shop.pass(10, 10)
  t.same(await toldBy(shop), [], 'one that is good again in time has not failed')
  const failures = "select sum(failures)::int as n from ops.check_counts where span = 'day'"
  t.same(await shop.query(failures), [{ n: 0 }], 'nor does it lower the uptime')
  shop.answer(503)
  await shop.pass(60)
  await shop.pass(20, 10)
  t.same(await toldBy(shop), [`told: ${FAILURE}`])
})

await t.test('the failure of a check that the inventory loses is told to be over', async (t) => {
  const shop = await openFront(t, { retries: 3 })
  shop.answer(503)
  shop.open()
  await shop.pass(1, 1)
  const fails = `told: ${FAILURE}`
  t.same(await toldBy(shop), [fails], 'the first look counts at once')
  shop.list([{ type: 'disk', name: 'disk', path: '/', max_percent: 100 }])
  await shop.pass(120)
  const lost = 'told: front is no longer checked'
  t.same(await toldBy(shop), [fails, lost], 'once, by two instances')
  const lasting =
    'select count(*)::int as count from notices.notices where key is not null and ended_at is null'
  t.same([...(await shop.query(lasting))], [{ count: 0 }])
})

await t.test('a check that flaps has failed all the while', async (t) => {
  const shop = await openFront(t, { retries: 0 })
  await shop.pass(60)
  for (let flap = 0; flap < 20; flap++) {
    shop.answer(flap % 2 === 0 ? 503 : 200)
    await shop.pass(60)
  }
  const states = await statesOf(shop)
  t.ok(states.length <= 6, `${states.length} changes in 20 minutes`)
  shop.answer(200)
  await shop.pass(600)
  t.equal((await statesOf(shop)).at(-1), 'ok', 'it is good again once it stays so')
  const told = await toldBy(shop)
  t.equal(told.length, (await statesOf(shop)).length, 'each change is told once')
})

await t.test('a failure of a muted check is told when the mute ends', async (t) => {
  for (const [named, told] of [
    [`'shop', 'front'`, false],
    [`'shop', null`, false],
    ['null, null', false],
    [`'shop', 'back'`, true],
    [`'blog', null`, true],
  ] as const) {
    const shop = await openFront(t, { retries: 0 })
    await shop.pass(60)
    await shop.query(
      `insert into ops.mutes (service, check_name, starts_at, ends_at, reason, author)
       values (${named}, now() - interval '1 hour', now() + interval '10 min', 'moving', 'command')`,
    )
    shop.answer(503)
    await shop.pass(120)
    t.same(await toldBy(shop), [told ? `told: ${FAILURE}` : FAILURE], named)
    t.same(await statesOf(shop), ['fail'], 'it has failed all the same')
    await shop.pass(600)
    const all = await toldBy(shop)
    t.same([all.length, all.at(-1)], [told ? 1 : 2, `told: ${FAILURE}`])
  }
})

await t.test('what an instance that has gone had begun is looked at by another one', async (t) => {
  const shop = await openFront(t)
  await shop.pass(60)
  await shop.query(`update ops.checks set claimed_until = now() + interval '3 min'`)
  const before = shop.asked()
  shop.later(240)
  await shop.pass(10, 10)
  t.equal(shop.asked(), before + 1)

  await t.test('a clock that is set back stops no check', async (t) => {
    shop.later(-2 * HOUR_S)
    const asked = shop.asked()
    await shop.pass(60)
    t.equal(shop.asked(), asked + 1)
    await shop.pass(120)
    t.equal(shop.asked(), asked + 3, 'and then as before')
  })
})
