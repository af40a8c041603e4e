import { t } from 'tap'
import type { Test } from 'tap'
import { goodForm } from '../helpers/api.ts'
import { eachBackend } from '../helpers/backends.ts'
import { ended, refuses, startGate, startOps, trigger } from '../helpers/ops-setup.ts'
import type { OpsServer, Session } from '../helpers/ops-setup.ts'
import { until } from '../helpers/until.ts'

const FIELDS = [
  ...['id', 'tier', 'model', 'status', 'started_at', 'ended_at', 'exit_code', 'cost_usd'],
  ...['num_turns', 'duration_ms', 'trigger', 'prompt_text', 'parent_session_id'],
]
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
/** What no list takes as `limit` or `offset`. */
const NO_COUNTS = ['-1', '1.5', 'x', '', '1e3', '0x10', '+1', ' 1', '1,2', 'null']

type Sessions = { readonly sessions: readonly Session[] }

async function list(ops: OpsServer, query = ''): Promise<readonly Session[]> {
  return (await ops.api<Sessions>('GET', `/sessions${query}`)).json.sessions
}

await eachBackend(t, 'sessions of the API', async (t: Test, backend) => {
  const gate = await startGate(t)
  const ops = await startOps(t, backend, { OPS_INVENTORY: gate.inventory })
  const { api } = ops
  await until(() => gate.waiting() > 0, 'the first session')

  await t.test('409 for a trigger while one runs, whatever its prompt', async (t) => {
    refuses(t, await api('POST', '/sessions/trigger', { prompt: 'look' }), 409, /running/)
    refuses(t, await api('POST', '/sessions/trigger', { prompt: ' ' }), 400, /prompt/)
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
    refuses(t, await api('POST', '/sessions/trigger', { prompt: 'two' }), 409, /running/)
    gate.open()
    const done = await ended(ops, made.json.id)
    t.match(done, { status: 'completed', exit_code: 0, cost_usd: null, prompt_text: prompt })
    t.match(done.ended_at, TIME)
    const took = Date.parse(done.ended_at ?? '') - Date.parse(done.started_at)
    t.equal(done.duration_ms, took)
  })

  await t.test('400 for a prompt that is missing, blank or no text', async (t) => {
    for (const body of [{}, { prompt: '' }, { prompt: ' \n\t' }, { prompt: null }, { prompt: 7 }]) {
      refuses(t, await api('POST', '/sessions/trigger', body), 400, /prompt/, JSON.stringify(body))
    }
    for (const prompt of ['a\0b', 'x'.repeat(100_001), ['x'], { a: 1 }]) {
      refuses(t, await api('POST', '/sessions/trigger', { prompt }), 400, /prompt/)
    }
    for (const body of ['', '[]', '"x"', 'null', '{', '{"prompt":"x"', Uint8Array.of(0xff)]) {
      refuses(t, await api('POST', '/sessions/trigger', body), 400, /JSON object/, String(body))
    }
  })

  await t.test('415 for a body that is not said to be JSON, 413 for a large one', async (t) => {
    const json = '{"prompt":"look"}'
    for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data']) {
      const answer = await api('POST', '/sessions/trigger', json, { 'content-type': type })
      refuses(t, answer, 415, /JSON/, type)
    }
    const prompt = 'x'.repeat(1024 * 1024)
    refuses(t, await api('POST', '/sessions/trigger', { prompt }), 413, /1048576/)
    t.equal((await list(ops)).length, 2, 'nothing began')
    gate.open(true)
    const type = 'Application/JSON; charset=utf-8'
    const made = await api<Session>('POST', '/sessions/trigger', json, { 'content-type': type })
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
    for (const name of ['limit', 'offset']) {
      for (const value of NO_COUNTS) {
        const query = `?${name}=${encodeURIComponent(value)}`
        refuses(t, await api('GET', `/sessions${query}`), 400, new RegExp(name), query)
      }
    }
  })

  await t.test('one by its id; a bad id is 400, an unknown one 404', async (t) => {
    const [newest] = await list(ops)
    const answer = await api<Session>('GET', `/sessions/${newest?.id}`)
    t.equal(answer.status, 200)
    goodForm(t, answer)
    t.same(answer.json, { ...newest, parent_session: null, child_sessions: [], chain_cost: 0 })
    const bad = ['x', '1x', '1.5', '0x1', '1e1', '%201', '-', '%F0%9F%99%82', '1%00', 'trigger']
    for (const id of bad) {
      refuses(t, await api('GET', `/sessions/${id}`), 400, /integer/, id)
    }
    for (const id of ['0', '-1', '99', '9223372036854775808', '99999999999999999999999']) {
      refuses(t, await api('GET', `/sessions/${id}`), 404, 'session not found', id)
    }
  })

  await t.test('the chain of an escalation is in the detail', async (t) => {
    const [third, second, first] = (await list(ops, '?limit=3')).map(({ id }) => id)
    await ops.server.stop()
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
    const later = await startOps(t, backend, ops.env)
    const detail = async (id: number | undefined): Promise<unknown> =>
      (await later.api('GET', `/sessions/${id}`)).json
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
