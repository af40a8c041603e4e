import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { INSTANT } from '../../helpers/api.ts'
import { postgres } from '../../helpers/backends.ts'
import { calls, says, startModel } from '../../helpers/model.ts'
import {
  ended,
  eventsOfSession,
  sessionsOf,
  startGate,
  startOps,
  trigger,
  runSession,
  type OpsServer,
  type Session,
} from '../../helpers/ops.ts'
import { temporaryFolder } from '../../helpers/owner.ts'
import { refuseAll, type Refusal } from '../../helpers/refusals.ts'
import { until } from '../../helpers/until.ts'

const START = 'POST /api/v1/sessions/trigger'
const JSON_TEXT = '{"prompt":"look"}'

const REFUSED: readonly Refusal[] = [
  ...[' \n\t', 7, 'a\0b', 'x'.repeat(100_001)].map((prompt): Refusal => {
    return [{ call: START, body: { prompt } }, 400, /prompt/]
  }),
  ...['', '[]', '{', Uint8Array.of(0xff)].map((body): Refusal => {
    return [{ call: START, body }, 400, /JSON object/]
  }),
  ...['text/plain', 'multipart/form-data'].map((type): Refusal => {
    const headers = { 'content-type': type }
    return [{ call: START, body: JSON_TEXT, headers }, 415, /JSON/]
  }),
  [{ call: START, body: { prompt: 'x'.repeat(1024 * 1024) } }, 413, /1048576/],
  ...['-1', '1.5', 'x', '', '0x10', '%2B1', '1%2C2'].map((value): Refusal => {
    return [`GET /api/v1/sessions?limit=${value}`, 400, /limit/]
  }),
  ...['x', '1.5', '0x1', '1e1', '%201', '1%00', 'trigger'].map((id): Refusal => {
    return [`GET /api/v1/sessions/${id}`, 400, /integer/]
  }),
  ...['0', '-1', '99', '99999999999999999999999'].map((id): Refusal => {
    return [`GET /api/v1/sessions/${id}`, 404, undefined, 'session not found']
  }),
]

type Detail = Session & {
  parent_session: Session | null
  child_sessions: readonly Session[]
  chain_cost: number
}

/** What stands in it stays as it is, a mark of reasoning, too. */
const escalation = { reason: 'disk fills up', findings: 'GET /</think>: log grows' }

async function detail({ api }: OpsServer, id: number) {
  return (await api<Detail>('GET', `/sessions/${id}`)).json
}

/** Waits until a session has a child. */
function childOf(ops: OpsServer, id: number) {
  const first = async () => (await detail(ops, id)).child_sessions[0]
  return until(first, `the child of session ${id}`, 30_000, 250)
}

await t.test('sessions of the API', async (t) => {
  const gate = await startGate(t)
  const ops = await startOps(t, postgres, { OPS_INVENTORY: gate.inventory })
  const { api } = ops
  const refuser = { service: 'ops', base: ops.base, state: () => sessionsOf(ops) } as const
  await until(() => gate.waiting() > 0, 'the first session')

  await t.test('201 for a trigger when none runs, and its end', async (t) => {
    await gate.pass()
    await ended(ops)
    const prompt = '  Is the shop up?\n<b>"ü" 🙂</b> '
    const made = await api<Session>('POST', '/sessions/trigger', { prompt, tier: 3, other: null })
    t.equal(made.status, 201)
    t.match(made.json, { status: 'running', trigger: 'api', tier: 1, model: 'none' })
    gate.open()
    const done = await ended(ops, made.json.id)
    t.match(done, { status: 'completed', exit_code: 0, cost_usd: null })
    t.equal(done.prompt_text, prompt, 'as it was sent')
    t.match(done.ended_at, INSTANT)
    t.equal(done.duration_ms, Date.parse(done.ended_at ?? '') - Date.parse(done.started_at))
  })

  await t.test('what is refused, and begins nothing', (t) => refuseAll(t, refuser, REFUSED))

  await t.test('the list: limits and offsets that are none', async (t) => {
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' }
    const made = await api<Session>('POST', '/sessions/trigger', JSON_TEXT, headers)
    t.equal(made.status, 201)
    await ended(ops, made.json.id)
    await runSession(ops, 'one more')
    const all = await sessionsOf(ops)
    for (const query of ['?offset=4', '?limit=0', '?offset=99999999999999999999']) {
      t.same(await sessionsOf(ops, query), [], query)
    }
    for (const query of ['?limit=1001', '?limit=99999999999999999999', '?x=1']) {
      t.same(await sessionsOf(ops, query), all, query)
    }
  })
})

await t.test('escalation from tier 1 to 3', async (t) => {
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  // A turn of each: 0.001 + 0.0001, and so on; two of tier 3. Tier 2's model has no price.
  const price = { input: 1, output: 1 }
  writeFileSync(prices, JSON.stringify({ one: price, three: { input: 10, output: 10 } }))
  const model = await startModel(t)
  const ops = await startOps(t, postgres, {
    ...model.env,
    OPS_PRICES: prices,
    OPS_TIER1_MODEL: 'one',
    OPS_TIER2_MODEL: 'two',
    OPS_TIER3_MODEL: 'three',
  })
  await ended(ops)

  model.answer(({ tier, prompt }) => {
    if (prompt === 'in between') return says('Late.')
    if (tier === 3) return says('Log rotated.')
    return calls(['escalate', { ...escalation, reason: `${escalation.reason} ${tier}` }])
  })
  // Another start that never gives up: none of them may slip in between parent and child.
  const first = await trigger(ops, 'why is it slow?')
  const pressing = until(
    async () => {
      const answer = await ops.api<Session>('POST', '/sessions/trigger', { prompt: 'in between' })
      return answer.status === 201 && answer.json
    },
    'a start after the chain',
    60_000,
  )
  const second = await childOf(ops, first.id)
  const third = await childOf(ops, second.id)
  await ended(ops, third.id)
  const late = await pressing
  t.ok(late.id > third.id && late.parent_session_id === null, 'it comes after the whole chain')
  await ended(ops, late.id)

  const [one, two, three] = await Promise.all(
    [first, second, third].map(({ id }) => detail(ops, id)),
  )
  t.match(one, { tier: 1, status: 'escalated', exit_code: 0, trigger: 'api', num_turns: 1 })
  t.match(two, { tier: 2, status: 'escalated', exit_code: 0, trigger: 'escalation' })
  t.match(three, { tier: 3, status: 'completed', exit_code: 0, trigger: 'escalation' })
  t.same([one?.cost_usd, two?.cost_usd, three?.cost_usd], [0.0011, null, 0.022])
  t.match(two?.parent_session, { id: first.id })
  t.match(one?.child_sessions, [{ id: second.id, tier: 2, cost_usd: null }])
  t.match([one?.parent_session, three?.child_sessions], [null, []])
  for (const each of [one, two, three]) {
    t.equal(Math.round((each?.chain_cost ?? 0) * 1e6), 23_100, 'each shows the cost of the chain')
  }
  t.match(two?.prompt_text, /^why is it slow\?[^]*disk fills up 1[^]*GET \/<\/think>: log grows/)
  t.match(three?.prompt_text, /^why is it slow\?[^]*disk fills up 1[^]*disk fills up 2/)
  const message = /^Session \d+ escalated to tier 2: /
  t.match(await eventsOfSession(ops, first.id), [{ level: 'info', message }])
})

await t.test(
  'at the highest tier, and in a dry run, an escalation only records an event',
  async (t) => {
    const model = await startModel(t, ({ tier, step }) =>
      step === 0 && tier < 3 ? calls(['escalate', escalation]) : says('That was all.'),
    )
    const ops = await startOps(t, postgres, { ...model.env, OPS_MAX_TIER: '2' })
    await ended(ops)
    const { id } = await trigger(ops)
    const child = await childOf(ops, id)
    t.match(await ended(ops, child.id), { tier: 2, status: 'completed', num_turns: 2 })
    t.same((await detail(ops, child.id)).child_sessions, [])
    const message = /tier 2 is the highest[^]*disk fills up[^]*log grows/
    t.match(await eventsOfSession(ops, child.id), [{ level: 'warning', message }])
    t.match(model.asked.at(-1)?.results, ['Not escalated'], 'the model is told')

    // From the moment of PUT config.
    await ops.api('PUT', '/config', { dry_run: true })
    const dry = await trigger(ops)
    t.match(await ended(ops, dry.id), { tier: 1, status: 'completed' })
    t.same((await detail(ops, dry.id)).child_sessions, [])
    t.match(await eventsOfSession(ops, dry.id), [{ level: 'warning', message: 'dry run' }])
  },
)
