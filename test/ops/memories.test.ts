import { t } from 'tap'
import type { Test } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { startModel, steps } from '../helpers/model-endpoint.ts'
import { ended, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Memory, OpsServer } from '../helpers/ops-setup.ts'
import { until } from '../helpers/until.ts'

async function memories({ api }: OpsServer): Promise<ReadonlyMap<string, Memory>> {
  const { json } = await api<{ memories: readonly Memory[] }>('GET', '/memories')
  return new Map(json.memories.map((memory) => [memory.observation, memory]))
}

await eachBackend(
  t,
  'seen again, a memory that has faded is active from 0.3 on, and one that people put to rest is not',
  async (t: Test, backend) => {
    const model = await startModel(t)
    const ops = await startOps(t, backend, model.env)
    await ended(ops)
    const note = (observation: string, confidence: number) =>
      ops.api('POST', '/memories', { category: 'timing', observation, confidence })
    await note('has faded', 0.35)
    await note('has faded far', 0.25)
    await note('was edited', 0.35)
    await note('was meant to rest', 0.35)
    await note('was put to rest', 0.35)
    await ops.server.stop()
    await backend.query(ops.env, 'update ops.memories set fades_at = now()')
    const later = await startOps(t, backend, ops.env)
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
    model.answer(steps(remembers))
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
