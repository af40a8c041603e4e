import { setImmediate as turn } from 'node:timers/promises'
import { t } from 'tap'
import type { Clock } from '../../kernel/clock.ts'
import { repeat } from '../../kernel/repeat.ts'
import type { Repeat } from '../../kernel/repeat.ts'

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
  const repeated = repeat(clock, 1_000, work, {
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
