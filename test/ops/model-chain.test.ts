import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, says, startModel } from '../helpers/model-endpoint.ts'
import type { Script } from '../helpers/model-endpoint.ts'
import { ended, refuses, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Event, OpsServer, Session } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { until } from '../helpers/until.ts'

type Detail = Session & {
  readonly parent_session?: Session
  readonly child_sessions: readonly Session[]
  readonly chain_cost: number
}

const escalation = { reason: 'disk fills up', findings: 'log grows by 1 GB an hour' }

async function detail({ api }: OpsServer, id: number): Promise<Detail> {
  return (await api<Detail>('GET', `/sessions/${id}`)).json
}

async function eventsOf({ api }: OpsServer): Promise<readonly Event[]> {
  return (await api<{ events: readonly Event[] }>('GET', '/events')).json.events
}

for (const backend of backends) {
  t.test(`escalation from tier 1 to 3 (${backend.name})`, async (t) => {
    const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
    // One turn of each: 0.001 + 0.0001, and so on. Tier 2's model has no price.
    const price = { input: 1, output: 1 }
    writeFileSync(prices, JSON.stringify({ one: price, three: { input: 10, output: 10 } }))
    const model = await startModel(t)
    const ops = await startOps(t, backend, {
      ...model.env,
      OPS_PRICES: prices,
      OPS_TIER1_MODEL: 'one',
      OPS_TIER2_MODEL: 'two',
      OPS_TIER3_MODEL: 'three',
    })
    await ended(ops)

    const refusals: Promise<unknown>[] = []
    const script: Script = ({ tier, prompt }) => {
      if (prompt === 'in between') return says('Late.')
      const start = ops.api('POST', '/sessions/trigger', { prompt: 'in between' })
      refusals.push(start.then((answer) => refuses(t, answer, 409, undefined, `tier ${tier}`)))
      if (tier === 3) return says('Log rotated.')
      if (tier > 1) t.match(prompt, escalation.findings)
      return calls(['escalate', { ...escalation, reason: `${escalation.reason} ${tier}` }])
    }
    model.answer(script)
    // Another start that never gives up: none of them may slip in between parent and child.
    const first = await trigger(ops, 'why is it slow?')
    const pressing = until(async () => {
      const answer = await ops.api<Session>('POST', '/sessions/trigger', { prompt: 'in between' })
      return answer.status === 201 && answer.json
    }, 'a start after the chain')
    const second = await until(
      async () => (await detail(ops, first.id)).child_sessions[0],
      'tier 2',
    )
    const third = await until(
      async () => (await detail(ops, second.id)).child_sessions[0],
      'tier 3',
    )
    const last = await ended(ops, third.id)
    const late = await pressing
    t.ok(late.id > third.id && late.parent_session_id === null, 'it comes after the whole chain')
    await ended(ops, late.id)
    await Promise.all(refusals)
    t.equal(refusals.length, 3)

    const [one, two, three] = await Promise.all(
      [first, second, third].map(({ id }) => detail(ops, id)),
    )
    t.match(one, { tier: 1, status: 'escalated', exit_code: 0, trigger: 'api', num_turns: 1 })
    t.match(two, { tier: 2, status: 'escalated', exit_code: 0, trigger: 'escalation' })
    t.match(three, { tier: 3, status: 'completed', exit_code: 0, trigger: 'escalation' })
    t.match([one?.model, two?.model, last.model], ['one', 'two', 'three'])
    t.same([one?.cost_usd, two?.cost_usd, three?.cost_usd], [0.0011, null, 0.011])
    t.equal(two?.parent_session?.id, first.id)
    t.equal(three?.parent_session?.id, second.id)
    t.same(one?.parent_session, undefined)
    for (const each of [one, two, three]) {
      t.equal(Math.round((each?.chain_cost ?? 0) * 1e6), 12_100, 'each shows the cost of the chain')
    }
    t.match(two?.prompt_text, /^why is it slow\?/, 'the child gets the original prompt')
    t.match(two?.prompt_text, /disk fills up 1[\s\S]*log grows by 1 GB an hour/)
    t.match(three?.prompt_text, /^why is it slow\?[\s\S]*disk fills up 1[\s\S]*disk fills up 2/)
    t.match(
      (await eventsOf(ops)).map(({ message, level }) => `${level} ${message}`),
      [/^info Session \d+ escalated to tier 3: /, /^info Session \d+ escalated to tier 2: /],
    )
  })
}

t.test('at the highest tier, and in a dry run, an escalation only records an event', async (t) => {
  const model = await startModel(t, ({ tier, step }) =>
    step === 0 && tier < 3 ? calls(['escalate', escalation]) : says('That was all.'),
  )
  const [, backend] = backends
  const ops = await startOps(t, backend, { ...model.env, OPS_MAX_TIER: '2' })
  await ended(ops)
  const { id } = await trigger(ops)
  const child = await until(async () => (await detail(ops, id)).child_sessions[0], 'the child')
  t.match(await ended(ops, child.id), { tier: 2, status: 'completed', num_turns: 2 })
  t.same((await detail(ops, child.id)).child_sessions, [])
  const [event] = await eventsOf(ops)
  t.match(event, { level: 'warning', session_id: child.id })
  t.match(event?.message, /tier 2 is the highest[^]*disk fills up[^]*log grows/)
  const results = model.asked.at(-1)?.results
  t.match(results?.[0], /^Not escalated/, 'the model is told')

  // From the moment of PUT config.
  await ops.api('PUT', '/config', { dry_run: true })
  const dry = await trigger(ops)
  t.match(await ended(ops, dry.id), { tier: 1, status: 'completed' })
  t.same((await detail(ops, dry.id)).child_sessions, [])
  t.match((await eventsOf(ops))[0], { level: 'warning', session_id: dry.id, message: /dry run/ })
})
