import { t } from 'tap'
import type { Test } from 'tap'
import { goodForm } from '../helpers/api.ts'
import { onPostgres } from '../helpers/backends.ts'
import { ended, startGate, startOps, trigger } from '../helpers/ops-setup.ts'
import type { OpsServer, Session } from '../helpers/ops-setup.ts'
import { refuseAll } from '../helpers/refusals.ts'
import type { Refusal } from '../helpers/refusals.ts'
import { until } from '../helpers/until.ts'

const FIELDS = [
  ...['id', 'tier', 'model', 'status', 'started_at', 'ended_at', 'exit_code', 'cost_usd'],
  ...['num_turns', 'duration_ms', 'trigger', 'prompt_text', 'parent_session_id'],
]
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const START = 'POST /api/v1/sessions/trigger'
const JSON_TEXT = '{"prompt":"look"}'

const REFUSED: readonly Refusal[] = [
  ...[
    ...[{}, { prompt: '' }, { prompt: ' \n\t' }, { prompt: null }, { prompt: 7 }],
    ...[{ prompt: 'a\0b' }, { prompt: 'x'.repeat(100_001) }, { prompt: ['x'] }],
    { prompt: { a: 1 } },
  ].map((body): Refusal => [{ call: START, body }, 400, undefined, /prompt/]),
  ...['', '[]', '"x"', 'null', '{', '{"prompt":"x"', Uint8Array.of(0xff)].map((body): Refusal => [
    { call: START, body },
    400,
    undefined,
    /JSON object/,
  ]),
  ...['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data'].map(
    (type): Refusal => [
      { call: START, body: JSON_TEXT, headers: { 'content-type': type } },
      ...([415, undefined, /JSON/] as const),
    ],
  ),
  [{ call: START, body: { prompt: 'x'.repeat(1024 * 1024) } }, 413, undefined, /1048576/],
  // What no list takes as `limit` or `offset`.
  ...['limit', 'offset'].flatMap((name) =>
    ['-1', '1.5', 'x', '', '1e3', '0x10', '%2B1', '%201', '1%2C2', 'null'].map((value): Refusal => [
      `GET /api/v1/sessions?${name}=${value}`,
      ...([400, undefined, new RegExp(name)] as const),
    ]),
  ),
  ...['x', '1x', '1.5', '0x1', '1e1', '%201', '-', '%F0%9F%99%82', '1%00', 'trigger'].map(
    (id): Refusal => [`GET /api/v1/sessions/${id}`, 400, undefined, /integer/],
  ),
  ...['0', '-1', '99', '9223372036854775808', '99999999999999999999999'].map((id): Refusal => [
    `GET /api/v1/sessions/${id}`,
    404,
    undefined,
    'session not found',
  ]),
]

type Sessions = { readonly sessions: readonly Session[] }

async function list(ops: OpsServer, query = ''): Promise<readonly Session[]> {
  return (await ops.api<Sessions>('GET', `/sessions${query}`)).json.sessions
}

await onPostgres(t, 'sessions of the API', async (t: Test, backend) => {
  const gate = await startGate(t)
  const ops = await startOps(t, backend, { OPS_INVENTORY: gate.inventory })
  const { api } = ops
  const refuser = { service: 'ops', base: ops.base, state: () => list(ops) } as const
  await until(() => gate.waiting() > 0, 'the first session')

  await t.test('409 for a trigger while one runs, whatever its prompt', async (t) => {
    await refuseAll(t, refuser, [
      [{ call: START, body: { prompt: 'look' } }, 409, undefined, /running/],
      [{ call: START, body: { prompt: ' ' } }, 400, undefined, /prompt/],
    ])
    t.equal((await list(ops)).length, 1)
  })

  await t.test('the scheduled one runs, with all fields', async (t) => {
    const answer = await api<Sessions>('GET', '/sessions')
    goodForm(t, answer)
    t.same(Object.keys(answer.json), ['sessions'])
    const [session] = answer.json.sessions
    t.same(Object.keys(session ?? {}).toSorted(), FIELDS.toSorted())
    t.match(session, { status: 'running', trigger: 'scheduled', tier: 1, model: 'none' })
    const nothing = { ended_at: null, exit_code: null, cost_usd: null, duration_ms: null }
    t.match(session, { ...nothing, num_turns: null, prompt_text: null, parent_session_id: null })
    t.match(session?.started_at, TIME)
  })

  await t.test('201 for a trigger when none runs, and its end', async (t) => {
    gate.open()
    await ended(ops)
    const prompt = '  Is the shop up?\n<b>"ü" 🙂</b> '
    const made = await api<Session>('POST', '/sessions/trigger', { prompt, tier: 3, other: null })
    t.equal(made.status, 201)
    goodForm(t, made)
    t.same(Object.keys(made.json).toSorted(), FIELDS.toSorted())
    t.match(made.json, { status: 'running', trigger: 'api', tier: 1, model: 'none' })
    t.equal(made.json.prompt_text, prompt, 'as it was sent')
    await until(() => gate.waiting() > 0, 'its check')
    const second = { call: START, body: { prompt: 'two' } }
    await refuseAll(t, refuser, [[second, 409, undefined, /running/]])
    gate.open(true)
    const done = await ended(ops, made.json.id)
    t.match(done, { status: 'completed', exit_code: 0, cost_usd: null, prompt_text: prompt })
    t.match(done.ended_at, TIME)
    const took = Date.parse(done.ended_at ?? '') - Date.parse(done.started_at)
    t.equal(done.duration_ms, took)
  })

  await t.test('what is refused, and begins nothing', (t) => refuseAll(t, refuser, REFUSED))

  await t.test('a type of JSON with a charset, in capitals', async (t) => {
    const type = 'Application/JSON; charset=utf-8'
    const headers = { 'content-type': type }
    const made = await api<Session>('POST', '/sessions/trigger', JSON_TEXT, headers)
    t.equal(made.status, 201)
    await ended(ops, made.json.id)
  })

  await t.test('the list: newest first, its limit and offset', async (t) => {
    for (let at = 0; at < 4; at++) await ended(ops, (await trigger(ops, `number ${at}`)).id)
    const all = await list(ops)
    const ids = all.map(({ id }) => id)
    t.equal(ids.length, 7)
    t.same(
      ids,
      ids.toSorted((a, b) => b - a),
    )
    const times = all.map(({ started_at }) => started_at)
    t.same(times, times.toSorted().toReversed())
    t.same(await list(ops, '?limit=2&offset=1'), all.slice(1, 3))
    t.same(await list(ops, '?offset=6'), all.slice(6))
    for (const query of [
      '?offset=7',
      '?limit=0',
      '?offset=9007199254740993',
      '?offset=99999999999999999999',
    ]) {
      t.same(await list(ops, query), [], query)
    }
    for (const query of ['?limit=1000', '?limit=1001', '?limit=99999999999999999999', '?x=1']) {
      t.same(await list(ops, query), all, query)
    }
  })

  await t.test('one by its id', async (t) => {
    const [newest] = await list(ops)
    const answer = await api<Session>('GET', `/sessions/${newest?.id}`)
    t.equal(answer.status, 200)
    goodForm(t, answer)
    t.same(answer.json, { ...newest, parent_session: null, child_sessions: [], chain_cost: 0 })
  })

  await t.test('the chain of an escalation is in the detail', async (t) => {
    const [third, second, first] = (await list(ops, '?limit=3')).map(({ id }) => id)
    await backend.query(
      ops.env,
      `update ops.sessions set
         status = case when id = $3 then status else 'escalated' end,
         trigger = case when id = $1 then trigger else 'escalation' end,
         tier = case id when $1 then 1 when $2 then 2 else 3 end,
         cost_usd = case id when $1 then 0.25 when $3 then 0.5 end,
         parent_session_id = case id when $2 then $1::bigint when $3 then $2::bigint end,
         chain_id = case when id = $1 then null else $1::bigint end
       where id in ($1, $2, $3)`,
      [first ?? 0, second ?? 0, third ?? 0],
    )
    const detail = async (id: number | undefined): Promise<unknown> =>
      (await api('GET', `/sessions/${id}`)).json
    const chain = { chain_cost: 0.75 }
    t.match(await detail(first), {
      ...{ id: first, tier: 1, ...chain, parent_session: null, parent_session_id: null },
      child_sessions: [{ id: second, tier: 2, cost_usd: null }],
    })
    t.match(await detail(second), {
      ...{ id: second, ...chain, parent_session_id: first },
      parent_session: { id: first, tier: 1, status: 'escalated' },
      child_sessions: [{ id: third, tier: 3, trigger: 'escalation', cost_usd: 0.5 }],
    })
    t.match(await detail(third), { ...chain, parent_session: { id: second }, child_sessions: [] })
  })
})
