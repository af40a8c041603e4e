import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import { openNotified, type Told } from '../helpers/notices.ts'

const [, postgres] = backends
const HOUR_S = 3_600

function messages(told: readonly Told[]): readonly string[] {
  return told.map(({ message }) => message)
}

await eachBackend(t, 'twelve hours in which all fails at some time', async (t: Test, backend) => {
  const one = await openNotified(t, backend, ['/a', '/b'])
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
    await one.pass(HOUR_S / 2, 300)
    one.reach(true)
    await one.pass(HOUR_S / 2, 300)
  }
  one.answer('/a', 200)
  one.answer('/b', 200)
  await one.pass(2 * HOUR_S, 300)
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
  await one.pass(HOUR_S)
  const failing = /^Notices are not taken by OPS_NOTIFY_URL: they are tried again$/
  t.match(messages(one.taken('/b')), ['check 1 fails', failing])
  one.answer('/a', 200)
  await one.pass(2 * HOUR_S)
  t.match(messages(one.taken('/b')).slice(2), [/^Notices are taken again by OPS_NOTIFY_URL/])
  t.same(messages(one.taken('/a')), ['check 1 fails'], 'it hears nothing of itself')
  const [end] = one.taken('/b').slice(2)
  t.equal(end?.begin_id, one.taken('/b')[1]?.id, 'the end names its beginning')
})
