import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { CHAT_KEY, deliverAlert } from '../helpers/alerts.ts'
import { onPostgres } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { calls, startModel } from '../helpers/model.ts'
import { ended, startOpsProcess, trigger } from '../helpers/ops.ts'
import type { Event, Session } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

await onPostgres(
  t,
  'kill -9 of the server during a session: the budget of the day counts what it had cost',
  async (t: Test, backend: Backend) => {
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
