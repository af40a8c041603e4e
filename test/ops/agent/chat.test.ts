import OpenAI from 'openai'
import { t } from 'tap'
import { openAgentOps } from '../../helpers/agents.ts'
import { CHAT_KEY } from '../../helpers/alerts.ts'
import { postgres } from '../../helpers/backends.ts'
import { request } from '../../helpers/http.ts'
import { calls, refusal, says, startModel } from '../../helpers/model.ts'
import { ended, startGate, startOps, type OpsServer, type Session } from '../../helpers/ops.ts'
import { until } from '../../helpers/until.ts'

const ASKED = [{ role: 'user', content: 'Is all well?' }] as const

/** The official client. It must not try a refusal again: each is looked at. */
function clientOf({ base }: Pick<OpsServer, 'base'>, apiKey = CHAT_KEY) {
  return new OpenAI({ baseURL: `${base}/v1`, apiKey, maxRetries: 0 })
}

/** The refusal of a call of the official client. */
async function refusedWith(call: PromiseLike<unknown>) {
  try {
    await call
  } catch (error) {
    if (error instanceof OpenAI.APIError) {
      return { status: error.status, code: error.code, type: error.type }
    }
    throw error
  }
  throw new Error('it was not refused')
}

await t.test('the official client asks, and a session answers', async (t) => {
  const gate = await startGate(t)
  gate.open()
  const env = { OPS_CHAT_API_KEY: CHAT_KEY, OPS_INVENTORY: gate.inventory, OPS_MAX_TIER: '2' }
  const ops = await startOps(t, postgres, env)
  await ended(ops)
  const client = clientOf(ops)

  await t.test('models are the tiers, up to the highest', async (t) => {
    const ids: string[] = []
    for await (const { id, owned_by } of client.models.list()) {
      t.equal(owned_by, 'gatehouse')
      ids.push(id)
    }
    t.same(ids, ['gatehouse', 'tier1', 'tier2'])
  })

  await t.test('an answer at once', async (t) => {
    const answer = await client.chat.completions.create({ model: 'tier2', messages: [...ASKED] })
    const message = { role: 'assistant', content: 'All 1 checks of 1 services are good.' }
    const choices = [{ index: 0, finish_reason: 'stop', message }]
    const object = 'chat.completion'
    t.match(answer, { id: /^chatcmpl-\d+$/, object, model: 'tier2', choices })
    const asked = { tier: 2, trigger: 'api', prompt_text: 'Is all well?', status: 'completed' }
    t.match(await sessionOf(ops, answer.id), asked)
  })

  await t.test('an answer while it is given; others are refused meanwhile', async (t) => {
    gate.shut()
    const chunks = await client.chat.completions.create({
      model: 'gatehouse',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Look again.' }] },
      ],
      stream: true,
    })
    await until(() => gate.waiting() === 1, 'the session to run')
    const busy = client.chat.completions.create({ model: 'tier1', messages: [...ASKED] })
    t.same(await refusedWith(busy), {
      status: 409,
      code: 'session_running',
      type: 'invalid_request_error',
    })
    gate.open()
    let [text, id, finish] = ['', '', '']
    for await (const chunk of chunks) {
      id = chunk.id
      text += chunk.choices[0]?.delta.content ?? ''
      finish = chunk.choices[0]?.finish_reason ?? finish
    }
    t.equal(text, 'All 1 checks of 1 services are good.\n')
    t.equal(finish, 'stop')
    const prompt_text = 'Look again.\n\nSaid before:\n\nsystem: Be brief.'
    t.match(await sessionOf(ops, id), { prompt_text, tier: 1 })
  })

  await t.test('what is wrong is refused in the shape that the client knows', async (t) => {
    const bad = { type: 'invalid_request_error' }
    const create = client.chat.completions.create.bind(client.chat.completions)
    const unknown = create({ model: 'tier3', messages: [...ASKED] })
    t.same(
      await refusedWith(unknown),
      { ...bad, status: 404, code: 'model_not_found' },
      'over max tier',
    )
    const blank = create({ model: 'tier1', messages: [{ role: 'user', content: ' ' }] })
    t.same(await refusedWith(blank), { ...bad, status: 400, code: null })
    const stranger = clientOf(ops, 'a wrong key').models.list()
    t.same(await refusedWith(stranger), { ...bad, status: 401, code: 'invalid_api_key' })
    const raw = await request(`${ops.base}/v1/chat/completions`, { method: 'POST', body: '{}' })
    t.equal(raw.status, 401, 'the key comes before the body')
    const form = await request(`${ops.base}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CHAT_KEY}`, 'content-type': 'text/plain' },
      body: '{}',
    })
    t.match({ status: form.status, body: form.json() }, { status: 415, body: { error: bad } })
  })

  await t.test('nobody reads an answer any more for a client that is gone', async (t) => {
    gate.shut()
    const stop = new AbortController()
    const asked = client.chat.completions
      .create({ model: 'tier1', messages: [...ASKED] }, { signal: stop.signal })
      .catch(() => 'gone')
    await until(() => gate.waiting() === 1, 'the session to run')
    stop.abort()
    t.equal(await asked, 'gone')
    const route = '"route":"/v1/chat/completions","status":499'
    await until(() => ops.server.logs().some((line) => line.includes(route)), 'the request to end')
    t.equal(gate.waiting(), 1, 'and the session goes on')
    gate.open()
    t.match(await ended(ops), { status: 'completed' })
  })
})

t.test('the answer goes on through an escalation, and says how a session failed', async (t) => {
  const model = await startModel(t)
  const ops = await startOps(t, postgres, { ...model.env, OPS_CHAT_API_KEY: CHAT_KEY })
  await ended(ops)
  model.answer(({ tier, step }) => {
    if (tier === 2) return says('It was the disk.')
    const escalate = { reason: 'unclear', findings: 'nothing yet' }
    return step === 0
      ? { ...calls(['escalate', escalate]), content: 'This is not for me.' }
      : says('Never said.')
  })
  const create = { model: 'tier1', messages: [...ASKED] }
  const answer = await clientOf(ops).chat.completions.create(create)
  t.match(answer.choices[0]?.message.content, /This is not for me\.\n[^]*It was the disk\.$/)

  const statuses = [503, 400]
  model.answer(() => refusal(statuses.shift() ?? 400, { message: 'out of order' }))
  const failed = await clientOf(ops).chat.completions.create(create)
  t.match(
    failed.choices[0]?.message.content,
    '\nSession failed: the model endpoint answered 400 (out of order)',
  )
})

t.test(
  'the answer says that a session was stopped, also when it had said something',
  async (t) => {
    const ops = await openAgentOps(t, postgres, { OPS_CHAT_API_KEY: CHAT_KEY })
    const said = { type: 'assistant', message: { content: [{ type: 'text', text: 'I look.' }] } }
    ops.agent.does(`echo '${JSON.stringify(said)}'; sleep 60\n`)
    const chunks = await clientOf(ops).chat.completions.create({
      model: 'tier1',
      messages: [...ASKED],
      stream: true,
    })
    let [text, id] = ['', '']
    for await (const chunk of chunks) {
      id = chunk.id.replace('chatcmpl-', '')
      text += chunk.choices[0]?.delta.content ?? ''
      if (text === 'I look.\n') {
        await request(`${ops.base}/sessions/${id}/stop`, { method: 'POST' })
        text += '(stop)\n'
      }
    }
    t.equal(text, `I look.\n(stop)\nSession ${id} stopped.\n`)
  },
)

async function sessionOf({ api }: OpsServer, completion: string): Promise<Session> {
  const { json } = await api<Session>('GET', `/sessions/${completion.replace('chatcmpl-', '')}`)
  return json
}
