import { t } from 'tap'
import { claudeResult, processesWith, startAgentOps, type AgentOps } from '../helpers/agents.ts'
import { onPostgres, embedded, postgres, type Backend } from '../helpers/backends.ts'
import {
  ended,
  eventsOfSession,
  opsServer,
  startOpsProcess,
  trigger,
  type Session,
  type Event,
} from '../helpers/ops.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CHAT_KEY, deliverAlert } from '../helpers/alerts.ts'
import { calls, startModel } from '../helpers/model.ts'
import { temporaryFolder } from '../helpers/owner.ts'

/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${200_000 + process.pid}.5`
const sleepers = () => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

/** An agent that will not leave by itself, with children that signals to its group do not reach. */
const STUBBORN = `trap '' INT TERM HUP
setsid sleep ${long} &
(setsid sh -c 'trap "" INT TERM HUP; setsid sleep ${long} & while :; do sleep ${long}; done' &)
env -i /usr/bin/env PATH="$PATH" setsid sleep ${long} &
echo started
while :; do sleep ${long}; done
`

/** Starts a session that only ends when it is ended. */
async function stubborn(ops: AgentOps) {
  ops.agent.does(STUBBORN)
  const session = await trigger(ops)
  // Five that sleep, and the shell that has its script in its command line.
  await until(() => sleepers().length === 6, 'six processes')
  return session
}

t.test('after kill -9 of the server nothing of a session survives', async (t) => {
  const ops = await startAgentOps(t, embedded)
  const { id } = await stubborn(ops)
  await ops.server.kill()
  t.equal(sleepers().length, 6, 'the crash itself ends no child')

  ops.agent.says([claudeResult()])
  const again = await startOpsProcess(t, embedded, ops.env)
  const failed = await ended(again, id)
  t.match(failed, { status: 'failed', exit_code: 1, ended_at: String })
  t.ok((failed.duration_ms ?? -1) >= 0, 'it has a duration')
  t.same(sleepers(), [], 'not even one that has cleared its environment')
  t.match(await eventsOfSession(again, id), [
    { level: 'critical', service: 'gatehouse', message: /the process that ran it is gone/ },
  ])
  // The session that a start begins by itself may still run.
  const next = await until(() => trigger(again), 'the next session')
  const { status } = await ended(again, next.id)
  t.equal(status, 'completed', 'the next session runs')
})

t.test('another server on the same database and machine ends what a dead one left', async (t) => {
  const ops = await startAgentOps(t, postgres)
  const other = await startServerProcess(t, { services: ['ops'], env: ops.env })
  const { id } = await stubborn(ops)
  await ops.server.kill()
  const failed = await ended(opsServer(other, ops.env), id)
  t.match(failed, { status: 'failed', exit_code: 1 })
  t.same(sleepers(), [])
})

await onPostgres(
  t,
  'kill -9 of the server during a session: the budget of the day counts what it had cost',
  async (t, backend: Backend) => {
    const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
    // 0.0011 dollars a turn.
    writeFileSync(prices, JSON.stringify({ default: { input: 1, output: 1 } }))
    const model = await startModel(t)
    const env = { ...model.env, OPS_CHAT_API_KEY: CHAT_KEY, OPS_PRICES: prices }
    const ops = await startOpsProcess(t, backend, env)
    const { cost_usd: before } = await ended(ops)

    const held = Promise.withResolvers<void>()
    t.teardown(() => held.resolve())
    model.answer(async ({ step }) => {
      if (step > 0) await held.promise
      return calls(['list_services', {}])
    })
    const { id } = await trigger(ops)
    const running = await until(async () => {
      const { json } = await ops.api<Session>('GET', `/sessions/${id}`)
      return json.cost_usd !== null && json
    }, 'the cost of its first turn')
    t.match(running, { status: 'running', cost_usd: 0.0011 }, 'it is shown while it runs')
    await ops.server.kill()

    // What both sessions have cost together.
    const budget = ((before ?? 0) + 0.0011).toFixed(4)
    const again = await startOpsProcess(t, backend, { ...ops.env, OPS_DAY_BUDGET_USD: budget })
    t.match(await ended(again, id), { status: 'failed', cost_usd: 0.0011 })
    const asked = model.asked.length
    // The session that a start begins by itself may still run.
    const next = await until(() => trigger(again), 'the next session')
    const refused = await ended(again, next.id)
    t.match(refused, { status: 'failed', num_turns: 0, cost_usd: 0 })
    const { json } = await again.api<{ events: readonly Event[] }>('GET', '/events')
    const problem = json.events.find(({ session_id }) => session_id === refused.id)?.message
    t.match(problem, 'budget of the day')
    t.match(problem, `is spent: $${budget}`)
    const { status, json: brief } = await deliverAlert(again.base, 'disk full')
    t.equal(status, 502)
    t.match(brief.message, 'budget of the day', 'a brief is refused as well')
    t.equal(model.asked.length, asked, 'no model is asked')
  },
)
