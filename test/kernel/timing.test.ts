import { t } from 'tap'
import { backoffMs, type Clock } from '../../kernel/time.ts'
import { setImmediate as turn } from 'node:timers/promises'
import { repeat, type Repeat } from '../../kernel/repeat.ts'
import { createSingleFlight } from '../../kernel/single-flight.ts'

const lowest = (size: number): Buffer => Buffer.alloc(size)
const highest = (size: number): Buffer => Buffer.alloc(size, 255)

t.test('each failure doubles the wait, up to ten seconds', async (t) => {
  const waits = [1, 2, 3, 4, 5, 6, 7, 1_000].map((failures) => backoffMs(failures, highest))
  t.same(waits, [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000])
})

t.test('half of the wait is left to chance', async (t) => {
  t.equal(backoffMs(1, lowest), 100)
  t.equal(backoffMs(1_000, lowest), 5_000)
})

type Work = PromiseWithResolvers<void>

/** Work whose runs the test ends, on a clock that the test moves. */
function begin(): {
  readonly repeated: Repeat
  readonly runs: readonly Work[]
  readonly said: readonly string[]
  tick(): Promise<void>
  /** Ends the newest run. */
  end(problem?: string): Promise<void>
} {
  let ticks: (() => void)[] = []
  const clock: Clock = {
    now: () => new Date(),
    elapsed: () => 0,
    every(_, callback) {
      ticks.push(callback)
      return () => (ticks = ticks.filter((other) => other !== callback))
    },
  }
  const runs: Work[] = []
  const said: string[] = []
  async function work(): Promise<void> {
    const run = Promise.withResolvers<void>()
    runs.push(run)
    await run.promise
  }
  const repeated = repeat(clock, 1_000, 'work', work, {
    fails: (error) => said.push(`fails: ${error instanceof Error ? error.message : ''}`),
    works: () => said.push('works'),
  })
  return {
    ...{ repeated, runs, said },
    async tick() {
      for (const callback of ticks) callback()
      await turn()
    },
    async end(problem) {
      if (problem === undefined) runs.at(-1)?.resolve()
      else runs.at(-1)?.reject(new Error(problem))
      await turn()
    },
  }
}

t.test('a run that takes long is not overtaken', async (t) => {
  const { runs, tick, end } = begin()
  t.equal(runs.length, 0, 'nothing before the first tick')
  await tick()
  await tick()
  await tick()
  t.equal(runs.length, 1)
  await end()
  t.equal(runs.length, 1, 'what was left out is not made up for')
  await tick()
  t.equal(runs.length, 2)
})

t.test('who asks during a run gets one more, which all who ask then share', async (t) => {
  const { repeated, runs, tick, end } = begin()
  await tick()
  let done = 0
  for (let asked = 0; asked < 3; asked++) void repeated.now().then(() => done++)
  await turn()
  t.equal(runs.length, 1)
  await end()
  t.same([runs.length, done], [2, 0], 'the run under way was not theirs')
  await end()
  t.same([runs.length, done], [2, 3])
  void repeated.now()
  t.equal(runs.length, 3, 'at once when nothing runs')
})

t.test('it says once that it fails, and once that it works again', async (t) => {
  const { repeated, said, tick, end } = begin()
  await tick()
  await end()
  t.same(said, [])
  await tick()
  await end('gone')
  await tick()
  await end('still gone')
  const asked = repeated.now()
  await end('still gone')
  await asked
  t.same(said, ['fails: gone'], 'who asked is told nothing else')
  for (let at = 0; at < 2; at++) {
    await tick()
    await end()
  }
  t.same(said, ['fails: gone', 'works'])
  await tick()
  await end('gone again')
  t.same(said, ['fails: gone', 'works', 'fails: gone again'])
})

t.test('a stop waits for the run under way, and begins no other', async (t) => {
  const { repeated, runs, tick, end } = begin()
  await tick()
  let stopped = false
  const asked = repeated.now()
  const stop = repeated.stop().then(() => (stopped = true))
  await turn()
  t.notOk(stopped)
  await end()
  await Promise.all([stop, asked])
  await tick()
  await repeated.now()
  await repeated.stop()
  t.equal(runs.length, 1)
})

interface Setting {
  version: number
  elapsed: number
  /** How often the work was done. */
  works: number
}

/** A shared answer that says how often it was made, in a time of our own. */
function setUp(): Setting & { ask(key?: string): Promise<number> } {
  const setting = { version: 0, elapsed: 0, works: 0 }
  const shared = createSingleFlight<number>({
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

  const shared = createSingleFlight<number>({
    version: () => setting.version,
    elapsed: () => setting.elapsed,
  })
  const change = (): Promise<number> => Promise.resolve(++setting.version)
  const before = await shared('a', change)
  t.equal(await shared('a', change), before + 1)
})

await t.test('an error is for those who wait for it, and is not kept', async (t) => {
  const shared = createSingleFlight<string>({ version: () => 0, elapsed: () => 0 })
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
