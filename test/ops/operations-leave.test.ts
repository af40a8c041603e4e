import { t } from 'tap'
import type { Test } from 'tap'
import { processesWith } from '../helpers/agent-setup.ts'
import { eachBackend } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { calls, inTier, says, startModel } from '../helpers/model-endpoint.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import { request } from '../helpers/http.ts'
import { until } from '../helpers/until.ts'

/** Nobody else sleeps that long: by it the processes of each operation are found. */
const long = (name: string): string => `${500_000 + process.pid}.${name.length}`
const sleepers = (name: string): readonly number[] => processesWith(`sleep ${long(name)}`)

await eachBackend(
  t,
  'what an operation started outlives its session',
  async (t: Test, backend: Backend) => {
    const names = ['up', 'bad', 'slow', 'stuck', 'talker']
    t.teardown(() => names.flatMap(sleepers).forEach((pid) => process.kill(pid, 'SIGKILL')))
    const does = (name: string, script: string) => ({
      ...{ name, action_type: name, timeout_s: name === 'slow' ? 1 : 60 },
      argv: ['sh', '-c', script.replaceAll('SLEEP', `sleep ${long(name)}`)],
    })
    const operations = [
      { ...does('up', 'SLEEP & setsid SLEEP & echo up'), verify: 'runs' },
      does('talker', 'sh -c "while echo tick; do sleep 0.1; done; SLEEP" &'),
      does('bad', 'SLEEP & setsid SLEEP & sleep 0.2; exit 3'),
      does('slow', 'SLEEP & setsid SLEEP & trap "exit 0" TERM; SLEEP & wait'),
      does('stuck', 'SLEEP & setsid SLEEP & env -i PATH="$PATH" setsid SLEEP & SLEEP'),
    ]
    const checks = [{ type: 'process', name: 'runs', match: `sleep ${long('up')}` }]
    const model = await startModel(t)
    const ops = await startOps(t, backend, {
      ...model.env,
      OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks, operations }] }),
    })
    await ended(ops)
    let told: readonly string[] = []
    const play = (...operations: readonly string[]) =>
      model.answer(
        inTier(3, ({ results, step }) => {
          told = results
          const call = (operation: string) =>
            ['run_operation', { service: 'shop', operation, reason: 'it hangs' }] as const
          return step === 0 ? calls(...operations.map(call)) : says('Done.')
        }),
      )

    play('up', 'talker', 'bad', 'slow')
    await trigger(ops)
    t.match(await ended(ops), { tier: 3, status: 'completed' })
    t.match(told, [
      /^up: ended with 0; check runs is good: 2 processes run\nup$/,
      /^talker: ended with 0\ntick\n/,
      /^Error: bad: ended with 3/,
      /^Error: slow: it took over 1 s/,
    ])
    t.equal(sleepers('up').length, 2, 'in its group, and in a session of its own')
    t.equal(sleepers('talker').length, 1, 'one that writes where its operation has written')
    t.same(sleepers('bad'), [], 'one that failed leaves nothing, whatever group it is in')
    t.same(sleepers('slow'), [], 'nor one that took too long')

    play('stuck')
    await trigger(ops)
    await until(() => sleepers('stuck').length > 3, 'the operation')
    const { json } = await ops.api<{ sessions: readonly { id: number }[] }>(
      'GET',
      '/sessions?limit=1',
    )
    const id = json.sessions[0]?.id ?? 0
    await request(`${ops.base}/sessions/${id}/stop`, { method: 'POST' })
    t.match(await ended(ops, id), { tier: 3, status: 'stopped' })
    t.same(sleepers('stuck'), [], 'nor one whose session is stopped')

    await ops.server.stop()
    t.equal(sleepers('up').length, 2, 'it outlives the server')
  },
)
