import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { noticeQueries } from '../../db/notices.ts'
import { acknowledgeNotice } from '../../services/notices/acknowledge.ts'
import { openNotified, type Told } from '../helpers/notices.ts'

const [, postgres] = backends
const HOUR_S = 3_600

function messages(told: readonly Told[]): readonly string[] {
  return told.map(({ message }) => message)
}

await t.test('twelve hours in which all fails at some time', async (t) => {
  const one = await openNotified(t, postgres, ['/a', '/b'])
  let lasting: string | undefined
  let made = 0
  // Each hour something begins or ends, while a target or the database is away in turn.
  for (let hour = 0; hour < 12; hour++) {
    one.answer('/a', hour % 3 === 0 ? 503 : 200)
    one.answer('/b', hour % 4 === 1 ? 500 : 200)
    if (lasting === undefined) await one.begin((lasting = `check ${++made}`))
    else {
      await one.end(lasting)
      lasting = undefined
    }
    one.reach(hour % 5 !== 2)
    await one.pass(HOUR_S / 2, 600)
    one.reach(true)
    await one.pass(HOUR_S / 2, 600)
  }
  one.answer('/a', 200)
  one.answer('/b', 200)
  await one.pass(2 * HOUR_S, 600)
  for (const target of ['/a', '/b']) {
    const told = one.taken(target).filter(({ message }) => message.startsWith('check'))
    const keys = told.map(({ key }) => key)
    t.equal(new Set(keys).size, keys.length, `${target} is told nothing twice`)
    for (let n = 1; n <= made; n++) {
      const about = messages(told).filter((message) => message.startsWith(`check ${n} `))
      t.equal(about.at(-1), `check ${n} ends`, `${target} hears of the end`)
      t.ok(about.length <= 2, `${target} hears of the beginning once`)
    }
  }
  t.match(one.logged(), /"msg":"notices not looked up"/)
  t.notMatch(one.logged(), /"level":"error"/)
})

await t.test('a target that fails is told to the others, once, and that it works', async (t) => {
  const one = await openNotified(t, postgres, ['/a', '/b'])
  one.answer('/a', 503)
  await one.begin('check 1')
  await one.pass(120)
  t.same(messages(one.taken('/b')), ['check 1 fails'], 'not after two minutes')
  await one.pass(HOUR_S, 300)
  const failing = /^Notices are not taken by OPS_NOTIFY_URL: they are tried again$/
  t.match(messages(one.taken('/b')), ['check 1 fails', failing])
  one.answer('/a', 200)
  await one.pass(2 * HOUR_S, 600)
  t.match(messages(one.taken('/b')).slice(2), [/^Over: Notices are not taken by OPS_NOTIFY_URL/])
  t.same(messages(one.taken('/a')), ['check 1 fails'], 'it hears nothing of itself')
  const [end] = one.taken('/b').slice(2)
  t.equal(end?.begin_id, one.taken('/b')[1]?.id, 'the end names its beginning')
})

/** Eleven in the evening, by the clock of this machine. */
const EVENING = new Date(2026, 4, 4, 23, 0).getTime()

await t.test('what lasts shorter than a target asks is not told to it', async (t) => {
  const one = await openNotified(t, postgres, ['/all'])
  await one.add('slow', '/slow', { after_s: 300 })
  await one.begin('short')
  await one.pass(240)
  await one.end('short')
  await one.pass(600)
  await one.begin('long')
  await one.pass(240)
  t.same(messages(one.taken('/slow')), [])
  await one.pass(120)
  t.same(messages(one.taken('/slow')), ['long fails'])
  await one.end('long')
  await one.pass(60)
  t.same(messages(one.taken('/slow')), ['long fails', 'long ends'])
  const all = ['short fails', 'short ends', 'long fails', 'long ends']
  t.same(messages(one.taken('/all')), all)
  one.reach(false)
  await one.begin('unseen')
  await one.pass(600)
  await one.end('unseen')
  one.reach(true)
  await one.pass(60)
  t.same(messages(one.taken('/slow')).slice(2), ['unseen ends'], 'it lasted over five minutes')
})

await t.test('services, levels and quiet hours of a target', async (t) => {
  const one = await openNotified(t, postgres, [], EVENING)
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
  t.same(messages(one.taken('/quiet')), ['broken fails', 'broken ends'])
  await one.pass(7 * HOUR_S, 600)
  t.same(messages(one.taken('/quiet')).slice(2).toSorted(), ['over ends', 'warned fails'])
  t.ok(
    one
      .taken('/quiet')
      .slice(2)
      .every(({ at }) => at.getHours() === 7),
  )
  t.same(messages(one.taken('/levels')), ['broken fails', 'broken ends'])
  t.same(messages(one.taken('/services')), [])
})

await t.test('a reminder every few hours, until it is over', async (t) => {
  const one = await openNotified(t, postgres, ['/once'])
  await one.add('reminded', '/reminded', { remind_s: 4 * HOUR_S })
  await one.begin('check')
  await one.pass(13 * HOUR_S, 1_200)
  t.match(one.taken('/reminded'), [
    { reminder: 0 },
    { reminder: 1 },
    { reminder: 2 },
    { reminder: 3 },
  ])
  const keys = one.taken('/reminded').map(({ key }) => key)
  t.equal(new Set(keys).size, 4, 'each is another notice')
  await one.end('check')
  await one.pass(13 * HOUR_S, 1_200)
  t.equal(one.taken('/reminded').length, 5)
  t.equal(messages(one.taken('/reminded')).at(-1), 'check ends')
  t.same(messages(one.taken('/once')), ['check fails', 'check ends'])
})

await t.test('what is acknowledged is reminded of no more, and its end is told', async (t) => {
  const one = await openNotified(t, postgres, [])
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
  t.same(messages(one.taken('/reminded')), ['check fails', 'check fails', 'check ends'])
  const rows = await one.query(`select acknowledged_by from notices.notices where id = ${id}`)
  t.same([...rows], [{ acknowledged_by: 'ann@example.com' }], 'the first one counts')
})

await t.test(
  'what one instance has sent is not due again because another one failed',
  async (t) => {
    const one = await openNotified(t, postgres, ['/a'])
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
    t.same(messages(one.taken('/a')), ['check fails'])
    t.same([...(await one.query('select * from notices.failing_targets'))], [])
  },
)
