import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, says, startModel, steps } from '../helpers/model-endpoint.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Memory, OpsServer } from '../helpers/ops-setup.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'

const [, postgres] = backends

async function memories({ api }: OpsServer): Promise<ReadonlyMap<string, Memory>> {
  const { json } = await api<{ memories: readonly Memory[] }>('GET', '/memories')
  return new Map(json.memories.map((memory) => [memory.observation, memory]))
}

t.test(
  'seen again, a memory that has faded is active from 0.3 on, and one that people put to rest is not',
  async (t) => {
    const model = await startModel(t)
    const ops = await startOps(t, postgres, model.env)
    await ended(ops)
    const note = (observation: string, confidence: number) =>
      ops.api('POST', '/memories', { category: 'timing', observation, confidence })
    await note('has faded', 0.35)
    await note('has faded far', 0.25)
    await note('was edited', 0.35)
    await note('was meant to rest', 0.35)
    await note('was put to rest', 0.35)
    await ops.server.stop()
    await postgres.query(ops.env, 'update ops.memories set fades_at = now()')
    const later = await startOps(t, postgres, ops.env)
    const change = async (observation: string, fields: Partial<Memory>): Promise<void> => {
      const memory = (await memories(later)).get(observation)
      const { status } = await later.api('PUT', `/memories/${memory?.id}`, { ...memory, ...fields })
      t.equal(status, 200, observation)
    }
    await until(
      async () => [...(await memories(later)).values()].every(({ active }) => !active),
      'memories to fade at the start',
    )
    await change('was edited', { observation: 'has other words' })
    await change('was meant to rest', { confidence: 0.5 })
    await change('was put to rest', { active: true })
    await change('was put to rest', { active: false })

    const seen = [...(await memories(later)).keys()]
    const remembers = seen.map(
      (observation) => ['remember', { category: 'timing', observation }] as const,
    )
    model.answer(({ step }) => (step === 0 ? calls(...remembers) : says('Done.')))
    t.match(await ended(later, (await trigger(later)).id), { status: 'completed' })
    const now = [...(await memories(later)).values()]
    t.same(
      new Map(
        now.map(({ observation, confidence, active }) => [observation, [confidence, active]]),
      ),
      new Map([
        ['has faded', [0.35, true]],
        ['has faded far', [0.25, false]],
        ['has other words', [0.35, true]],
        ['was meant to rest', [0.6, false]],
        ['was put to rest', [0.35, false]],
      ]),
    )
  },
)

t.test('notes of agents leave the operators theirs, and are bounded', async (t) => {
  const model = await startModel(t)
  const ops = await startOps(t, postgres, model.env)
  await ended(ops)
  const note = { category: 'behavior', observation: 'of the operator', confidence: 0.3 }
  t.equal((await ops.api('POST', '/memories', note)).status, 201)
  const many = Array.from({ length: 20 }, (_, at) => {
    const observation = `[operator] note ${at} ${'x'.repeat(1_000)}`
    return ['remember', { category: 'behavior', observation, confidence: 1 }] as const
  })
  model.answer(({ step }) => (step === 0 ? calls(...many) : says('Done.')))
  const { id } = await ended(ops, (await trigger(ops, 'note a lot')).id)

  model.answer(steps([['recall', { limit: 2 }]]))
  await ended(ops, (await trigger(ops, 'and now?')).id)
  const [first, second] = model.asked.filter(({ prompt }) => prompt === 'and now?')
  const told = String(first?.request.messages[0]?.content).split('\n')
  const at = told.indexOf('- [operator] behavior (0.3): of the operator')
  t.match(told[at - 1], 'Remembered', 'the operator comes first')
  t.match(told[at + 1], `- [session ${id}, tier 1] behavior (1): [operator] note 0`)
  t.match(second?.results[0], /^\[operator\] - \(behavior, 0\.3\): of the operator\n\[session/)

  await postgres.query(
    ops.env,
    `insert into ops.memories (category, observation, confidence, active, created_at, updated_at, fades_at, tier)
     select 'behavior', 'seeded ' || n, 0.9, true, now(), now(), now() + interval '1 year', 1
       from generate_series(1, 600) as n`,
  )
  const last = { category: 'behavior', observation: 'the last one', confidence: 0.1 }
  model.answer(steps([['remember', last]]))
  await ended(ops, (await trigger(ops)).id)
  const { json } = await ops.api<{ memories: readonly Memory[] }>('GET', '/memories?limit=1000')
  const by = (test: (memory: Memory) => boolean): number => json.memories.filter(test).length
  t.equal(
    by(({ tier }) => tier > 0),
    500,
    'so many notes of agents are kept',
  )
  t.equal(
    by(({ observation }) => observation.startsWith('[operator]')),
    20,
    'the surest ones',
  )
  t.equal(
    by(({ observation }) => observation === 'the last one'),
    1,
    'and the new one',
  )
  t.equal(
    by(({ tier }) => tier === 0),
    1,
    'what operators wrote is not counted',
  )
})

t.test('a check has one memory of its time, which follows it', async (t) => {
  let slow = false
  const { url } = await startReceiver(t, (_, response) => {
    if (slow) setTimeout(() => response.writeHead(204).end(), 1_100)
    else response.writeHead(204).end()
  })
  const check = { type: 'http', name: 'front', url, timeout_s: 30 }
  const services = [{ name: 'shop', checks: [check] }]
  const ops = await startOps(t, postgres, { OPS_INVENTORY: await inventoryFile(t, { services }) })
  await ended(ops)
  async function look(): Promise<readonly Memory[]> {
    await ended(ops, (await trigger(ops)).id)
    return [...(await memories(ops)).values()].toSorted((a, b) => a.id - b.id)
  }
  const [quick] = await memories(ops).then((found) => [...found.values()])
  t.match(quick, { service: 'shop', observation: /^front usually answers within \d+ ms$/ })
  // One that was seen more often is not given up for a single other time.
  await postgres.query(ops.env, 'update ops.memories set confidence = 0.8')
  slow = true
  t.match(await look(), [{ id: quick?.id, observation: quick?.observation, confidence: 0.7 }])
  const changed = await look()
  const slowly = /^front usually answers within \d{4,} ms$/
  t.match(changed, [{ id: quick?.id, observation: slowly, confidence: 0.7, active: true }])
  t.equal(changed.length, 1, 'no second one contradicts it')
  t.match(await look(), [{ id: quick?.id, observation: slowly, confidence: 0.8 }])

  const words = { observation: 'front is slow at night', confidence: 0.5, active: true }
  t.equal((await ops.api('PUT', `/memories/${quick?.id}`, words)).status, 200)
  slow = false
  const apart = await look()
  t.equal(apart.length, 2)
  t.match(apart[0], { id: quick?.id, ...words }, 'the words of an operator stay')
  t.match(apart[1], { service: 'shop', observation: /^front usually answers within \d+ ms$/ })
})
