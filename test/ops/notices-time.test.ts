import { t } from 'tap'
import { noticeQueries } from '../../db/notices.ts'
import { acknowledgeNotice } from '../../services/notices/acknowledge.ts'
import { openNotified, type Notified } from '../helpers/notices.ts'

const HOUR_S = 3_600

await t.test('a target that fails is told to the others, once, and that it works', async (t) => {
  const one = await openNotified(t, ['/a', '/b'])
  one.answer('/a', 503)
  await one.begin('check 1')
  await one.pass(120)
  t.same(one.messages('/b'), ['check 1 fails'], 'not after two minutes')
  await one.pass(HOUR_S, 300)
  const failing = 'Notices are not taken by OPS_NOTIFY_URL: they are tried again'
  t.match(one.messages('/b'), ['check 1 fails', failing])
  one.answer('/a', 200)
  await one.pass(2 * HOUR_S, 600)
  t.match(one.messages('/b', 2), ['Over: Notices are not taken by OPS_NOTIFY_URL'])
  t.same(one.messages('/a'), ['check 1 fails'], 'it hears nothing of itself')
  const [, begin, end] = one.taken('/b')
  t.equal(end?.begin_id, begin?.id, 'the end names its beginning')
})

/** Eleven in the evening, by the clock of this machine. */
const EVENING = new Date(2026, 4, 4, 23, 0).getTime()

await t.test('what lasts shorter than a target asks is not told to it', async (t) => {
  const one = await openNotified(t, ['/all'])
  await one.add('slow', '/slow', { after_s: 300 })
  await one.begin('short')
  await one.pass(240)
  await one.end('short')
  await one.pass(600)
  await one.begin('long')
  await one.pass(240)
  t.same(one.messages('/slow'), [])
  await one.pass(120)
  t.same(one.messages('/slow'), ['long fails'])
  await one.end('long')
  await one.pass(60)
  t.same(one.messages('/slow'), ['long fails', 'long ends'])
  const all = ['short fails', 'short ends', 'long fails', 'long ends']
  t.same(one.messages('/all'), all)
  one.reach(false)
  await one.begin('unseen')
  await one.pass(600)
  await one.end('unseen')
  one.reach(true)
  await one.pass(60)
  t.same(one.messages('/slow', 2), ['unseen ends'], 'it lasted over five minutes')
  t.match(one.logged(), '"msg":"notices not looked up"')
  t.notMatch(one.logged(), '"level":"error"')
})

await t.test('services, levels and quiet hours of a target', async (t) => {
  const one = await openNotified(t, [], EVENING)
  await one.add('quiet', '/quiet', { quiet: '22:00-07:00' })
  await one.add('levels', '/levels', { levels: ['critical'] })
  await one.add('services', '/services', { services: ['other'] })
  await one.begin('warned', 'warning')
  await one.begin('broken', 'critical')
  await one.begin('over', 'warning')
  await one.pass(HOUR_S, 600)
  await one.end('broken')
  await one.end('over')
  await one.pass(HOUR_S, 600)
  t.same(one.messages('/quiet'), ['broken fails', 'broken ends'])
  await one.pass(7 * HOUR_S, 600)
  t.same(one.messages('/quiet', 2).toSorted(), ['over ends', 'warned fails'])
  t.ok(one.taken('/quiet').every(({ at }, nr) => nr < 2 || at.getHours() === 7))
  t.same(one.messages('/levels'), ['broken fails', 'broken ends'])
  t.same(one.messages('/services'), [])
})

await t.test('a reminder every few hours, until it is over', async (t) => {
  const one = await openNotified(t, ['/once'])
  await one.add('reminded', '/reminded', { remind_s: 4 * HOUR_S })
  await one.begin('check')
  await one.pass(13 * HOUR_S, 1_200)
  const told = one.taken('/reminded')
  t.same(
    told.map(({ reminder }) => reminder),
    [0, 1, 2, 3],
  )
  t.equal(new Set(told.map(({ key }) => key)).size, 4, 'each is another notice')
  await one.end('check')
  await one.pass(5 * HOUR_S, 1_200)
  t.same(one.messages('/reminded', 4), ['check ends'])
  t.same(one.messages('/once'), ['check fails', 'check ends'])
})

await t.test('what is acknowledged is reminded of no more, and its end is told', async (t) => {
  const one = await openNotified(t)
  await one.add('reminded', '/reminded', { remind_s: HOUR_S })
  await one.begin('check')
  await one.pass(1.5 * HOUR_S, 600)
  t.equal(one.taken('/reminded').length, 2)
  const [{ id = 0 } = {}] = one.taken('/reminded')
  const tools = {
    db: one.db,
    actor: { kind: 'user', email: 'ann@example.com', groups: [] },
  } as const
  await acknowledgeNotice(tools, id, one.now())
  await acknowledgeNotice({ ...tools, actor: { kind: 'operator' } }, id, one.now())
  await one.pass(5 * HOUR_S, 600)
  await one.end('check')
  await one.pass(60)
  t.same(one.messages('/reminded'), ['check fails', 'check fails', 'check ends'])
  const rows = await one.query(`select acknowledged_by from notices.notices where id = ${id}`)
  t.same([...rows], [{ acknowledged_by: 'ann@example.com' }], 'the first one counts')
})

await t.test(
  'what one instance has sent is not due again because another one failed',
  async (t) => {
    const one = await openNotified(t, ['/a'])
    await one.begin('check')
    await one.pass(60)
    const [{ id = 0 } = {}] = one.taken('/a')
    await noticeQueries.finishSends(one.db, {
      target: 'OPS_NOTIFY_URL',
      sends: [{ id, number: 0 }],
      problem: 'TimeoutError',
      now: one.now(),
      next_at: one.now(),
    })
    await one.pass(HOUR_S, 600)
    t.same(one.messages('/a'), ['check fails'])
    t.same([...(await one.query('select * from notices.failing_targets'))], [])
  },
)

// Two hundred things that fail at once are one message to people; of PagerDuty forty are eleven incidents (decision 054).

const NAMES = Array.from({ length: 200 }, (_, at) => `check ${at}`)

async function beginAll(one: Notified, names: readonly string[]) {
  for (const name of names) await one.begin(name)
}

async function endAll(one: Notified, names: readonly string[]) {
  for (const name of names) await one.end(name)
}

await t.test('a storm is one message, and what goes on is one in five minutes', async (t) => {
  const one = await openNotified(t, ['/people'])
  const told = (from?: number) => one.messages('/people', from)
  await beginAll(one, NAMES.slice(0, 100))
  await one.pass(1, 1)
  t.same(told(), ['check 0 fails'], 'the first goes at once')
  await beginAll(one, NAMES.slice(100))
  await one.pass(58, 29)
  t.equal(told().length, 1, 'the others are gathered for a minute')
  await one.pass(2, 1)
  const others = [1, 2, 3, 4, 5].map((at) => `shop: check ${at} fails`)
  const storm = ['199 more checks fail: shop (199)', ...others, 'and 194 more'].join('\n')
  t.same(told(), ['check 0 fails', storm])

  await t.test('programs get each notice in it', async (t) => {
    const [, { notices = [], kind, level } = {}] = one.taken('/people')
    t.same([kind, level, notices.length], ['storm', 'critical', 199])
    t.match(notices[0], { message: 'check 1 fails' })
  })

  await t.test('each has its own row', async (t) => {
    const rows = await one.query('select from notices.sends where sent_at is not null')
    t.equal(rows.length, 200)
  })

  await t.test('what comes later waits for five minutes', async (t) => {
    await beginAll(one, ['late 1', 'late 2'])
    await one.pass(298, 149)
    t.equal(told().length, 2)
    await one.pass(2, 1)
    const late = '2 more notices: shop (2)\nshop: late 1 fails\nshop: late 2 fails'
    t.same(told(2), [late])
  })

  await t.test('the ends are one message, too', async (t) => {
    await endAll(one, NAMES)
    await one.pass(1, 1)
    await one.pass(60, 20)
    t.equal(told(3).length, 2)
    t.match(one.taken('/people').slice(3), [
      { message: 'check 0 ends', level: 'info' },
      { message: '199 more checks are good again: shop (199)\n', level: 'info' },
    ])
  })

  await t.test('afterwards one goes at once again', async (t) => {
    await one.pass(600, 300)
    const before = told().length
    await one.begin('quiet night')
    await one.pass(1, 1)
    t.same(told(before), ['quiet night fails'])
  })
})

await t.test('reminders of a storm are one message', async (t) => {
  const one = await openNotified(t)
  await one.add('reminded', '/reminded', { remind_s: 3_600 })
  await beginAll(one, NAMES.slice(0, 20))
  await one.pass(1, 1)
  await one.pass(60)
  t.equal(one.taken('/reminded').length, 2)
  await one.pass(3_600 + 120)
  t.match(one.taken('/reminded').slice(2), [
    { message: 'check 0 fails', reminder: 1 },
    { message: '19 more checks still fail: shop (19)\n' },
  ])
})

await t.test(
  'a target that fails is tried once in ten seconds, with one of a storm',
  async (t) => {
    const one = await openNotified(t, ['/people'])
    one.answer('/people', 503)
    await beginAll(one, NAMES.slice(0, 30))
    await one.pass(30, 1)
    const attempts = 'select coalesce(sum(attempts), 0)::integer as sum from notices.sends'
    t.same(await one.query(attempts), [{ sum: 3 }])
    one.answer('/people', 200)
    await one.pass(80, 10)
    t.match(one.messages('/people'), [/^check \d+ fails$/, '29 more checks fail'])
  },
)

await t.test('PagerDuty has ten incidents of their own and one for the rest', async (t) => {
  const one = await openNotified(t)
  const key = { token: 'routing-key-of-a-test' }
  await one.add('duty', '/v2/enqueue', key, 'pagerduty+')
  const sent = () => one.taken('/v2/enqueue')
  const keysOf = (action: string) =>
    sent()
      .filter(({ event_action }) => event_action === action)
      .map(({ dedup_key }) => String(dedup_key))
  await beginAll(one, NAMES.slice(0, 40))
  await one.pass(1, 1)
  t.equal(keysOf('trigger').length, 10)
  await one.pass(61, 20)
  const triggered = keysOf('trigger')
  t.same([triggered.length, new Set(triggered).size], [11, 11])
  t.match(sent().at(-1), { payload: { summary: '30 more checks fail: shop (30)' } })

  await t.test('the rest is over when the last of them is', async (t) => {
    await endAll(one, NAMES.slice(0, 30))
    await one.pass(20, 2)
    t.same(new Set(keysOf('resolve')), new Set(triggered.slice(0, 10)))
    await endAll(one, NAMES.slice(30, 40))
    await one.pass(20, 2)
    t.same(keysOf('resolve').toSorted(), triggered.toSorted())
  })
})
