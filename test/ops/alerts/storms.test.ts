import t from 'tap'
import { backends } from '../../helpers/backends.ts'
import { openNotified, type Notified, type Told } from '../../helpers/notices.ts'

const [, postgres] = backends

// Two hundred things that fail at once are one message to people and eleven incidents of PagerDuty (decision 054).

const NAMES = Array.from({ length: 200 }, (_, at) => `check ${at}`)

async function beginAll(one: Notified, names: readonly string[]): Promise<void> {
  for (const name of names) await one.begin(name)
}

async function endAll(one: Notified, names: readonly string[]): Promise<void> {
  for (const name of names) await one.end(name)
}

function texts(told: readonly Told[]): readonly string[] {
  return told.map(({ message }) => message)
}

await t.test('a storm is one message, and what goes on is one in five minutes', async (t) => {
  const one = await openNotified(t, postgres, ['/people'])
  const told = (): readonly Told[] => one.taken('/people')
  await beginAll(one, NAMES.slice(0, 100))
  await one.pass(1, 1)
  t.same(texts(told()), ['check 0 fails'], 'the first goes at once')
  await beginAll(one, NAMES.slice(100))
  await one.pass(58, 29)
  t.equal(told().length, 1, 'the others are gathered for a minute')
  await one.pass(2, 1)
  const others = [1, 2, 3, 4, 5].map((at) => `shop: check ${at} fails`)
  const storm = ['199 more checks fail: shop (199)', ...others, 'and 194 more'].join('\n')
  t.same(texts(told()), ['check 0 fails', storm])

  await t.test('programs get each notice in it', async (t) => {
    const [, { notices = [], kind, level } = {}] = told()
    t.same([kind, level, notices.length], ['storm', 'critical', 199])
    t.match(notices[0], { service: 'shop', message: 'check 1 fails', url: /^http:\/\/ops\// })
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
    t.same(texts(told()).slice(2), [late])
  })

  await t.test('the ends are one message, too', async (t) => {
    await endAll(one, NAMES)
    await one.pass(1, 1)
    await one.pass(60, 20)
    const [first, second, ...more] = told().slice(3)
    t.same([first?.message, first?.level], ['check 0 ends', 'info'])
    t.match(second, { message: /^199 more checks are good again: shop \(199\)\n/, level: 'info' })
    t.same(more, [])
  })

  await t.test('afterwards one goes at once again', async (t) => {
    await one.pass(600, 300)
    const before = told().length
    await one.begin('quiet night')
    await one.pass(1, 1)
    t.same(texts(told().slice(before)), ['quiet night fails'])
  })
})

await t.test('reminders of a storm are one message', async (t) => {
  const one = await openNotified(t, postgres, [])
  await one.add('reminded', '/reminded', { remind_s: 3_600 })
  await beginAll(one, NAMES.slice(0, 20))
  await one.pass(1, 1)
  await one.pass(60)
  t.equal(one.taken('/reminded').length, 2)
  await one.pass(3_600 + 120)
  t.match(one.taken('/reminded').slice(2), [
    { message: 'check 0 fails', reminder: 1 },
    { message: /^19 more checks still fail: shop \(19\)\n/ },
  ])
})

await t.test(
  'a target that fails is tried once in ten seconds, with one of a storm',
  async (t) => {
    const one = await openNotified(t, postgres, ['/people'])
    one.answer('/people', 503)
    await beginAll(one, NAMES.slice(0, 30))
    await one.pass(30, 1)
    const attempts = 'select coalesce(sum(attempts), 0)::integer as sum from notices.sends'
    t.same(await one.query(attempts), [{ sum: 3 }])
    one.answer('/people', 200)
    await one.pass(80, 10)
    t.match(texts(one.taken('/people')), [/^check \d+ fails$/, /^29 more checks fail/])
  },
)

await t.test('PagerDuty has ten incidents of their own and one for the rest', async (t) => {
  const one = await openNotified(t, postgres, [])
  const key = { token: 'routing-key-of-a-test' }
  await one.add('duty', '/v2/enqueue', key, 'pagerduty+')
  const sent = (): readonly Told[] => one.taken('/v2/enqueue')
  const keysOf = (action: string): readonly string[] =>
    sent()
      .filter(({ event_action }) => event_action === action)
      .map(({ dedup_key }) => String(dedup_key))
  await beginAll(one, NAMES)
  await one.pass(1, 1)
  t.equal(keysOf('trigger').length, 10)
  await one.pass(61, 20)
  const triggered = keysOf('trigger')
  t.equal(new Set(triggered).size, 11)
  t.equal(triggered.length, 11)
  t.match(sent().at(-1), { payload: { summary: /^190 more checks fail: shop \(190\)/ } })

  await t.test('the rest is over when the last of them is', async (t) => {
    await endAll(one, NAMES.slice(0, 150))
    await one.pass(20, 1)
    t.same(new Set(keysOf('resolve')), new Set(triggered.slice(0, 10)))
    await endAll(one, NAMES.slice(150))
    await one.pass(20, 1)
    t.same(new Set(keysOf('resolve')), new Set(triggered))
    t.equal(keysOf('resolve').length, 11)
  })
})
