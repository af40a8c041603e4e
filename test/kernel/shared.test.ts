import { t } from 'tap'
import { createShared } from '../../kernel/shared.ts'

interface Setting {
  version: number
  elapsed: number
  /** How often the work was done. */
  works: number
}

/** A shared answer that says how often it was made, in a time of our own. */
function setUp(): Setting & { ask(key?: string): Promise<number> } {
  const setting = { version: 0, elapsed: 0, works: 0 }
  const shared = createShared<number>({
    version: () => setting.version,
    elapsed: () => setting.elapsed,
  })
  return Object.assign(setting, {
    ask: (key = 'a') => shared(key, () => Promise.resolve(++setting.works)),
  })
}

await t.test('an answer is given again for a tenth of a second', async (t) => {
  const setting = setUp()
  t.same(await Promise.all([setting.ask(), setting.ask()]), [1, 1], 'who asks together shares')
  setting.elapsed = 99
  t.equal(await setting.ask(), 1)
  t.equal(await setting.ask('b'), 2, 'another question has its own')
  setting.elapsed = 100
  t.equal(await setting.ask(), 3)
})

await t.test('a change makes it old at once, also one while it was made', async (t) => {
  const setting = setUp()
  t.equal(await setting.ask(), 1)
  setting.version++
  t.equal(await setting.ask(), 2)

  const shared = createShared<number>({
    version: () => setting.version,
    elapsed: () => setting.elapsed,
  })
  const change = (): Promise<number> => Promise.resolve(++setting.version)
  const before = await shared('a', change)
  t.equal(await shared('a', change), before + 1)
})

await t.test('an error is for those who wait for it, and is not kept', async (t) => {
  const shared = createShared<string>({ version: () => 0, elapsed: () => 0 })
  const failing = (): Promise<string> => Promise.reject(new Error('away'))
  const both = [shared('a', failing), shared('a', failing)]
  for (const answer of both) await t.rejects(answer, { message: 'away' })
  t.equal(await shared('a', () => Promise.resolve('here')), 'here')
})

await t.test('sixteen answers are kept, the oldest goes first', async (t) => {
  const setting = setUp()
  for (let n = 0; n < 17; n++) await setting.ask(String(n))
  await setting.ask('1')
  t.equal(setting.works, 17, 'the second is there')
  await setting.ask('0')
  t.equal(setting.works, 18, 'the first is not')
})
