import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { completeChat } from '../../services/ops/runners/model-chat.ts'
import type { Usage } from '../../services/ops/runners/model-reply.ts'
import { createRedact } from '../../services/ops/redact.ts'
import { backends } from '../helpers/backends.ts'
import { calls, MODEL_KEY, refusal, says, sse, startModel, whole } from '../helpers/model.ts'
import type { RawAnswer, Script } from '../helpers/model.ts'
import { ended, eventsOf, outputOf, startOps, trigger } from '../helpers/ops.ts'
import type { Event, OpsServer, Session } from '../helpers/ops.ts'
import { freePort, temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'

const [, postgres] = backends
const model = await startModel(t)
const ops = await startOps(t, postgres, { ...model.env, OPS_MAX_TURNS: '6' })
await ended(ops)

const STREAM = { 'content-type': 'text/event-stream' }

/** Runs one session by a script, and gives it, the event of its end and how often the model was asked. */
async function play(
  script: Script,
  server: OpsServer = ops,
): Promise<{ session: Session; event: Event | undefined; requests: number }> {
  const before = model.asked.length
  model.answer(script)
  const { id } = await trigger(server)
  const session = await ended(server, id)
  const events = await eventsOf(server)
  const event = events.find(({ session_id }) => session_id === id)
  return { session, event, requests: model.asked.length - before }
}

t.test('429 is tried again after the pause that Retry-After asks for', async (t) => {
  const error = { message: 'slow down', type: 'rate_limit_error' }
  const busy = refusal(429, error, { 'retry-after': '1' })
  const { session, event, requests } = await play([busy, 'Fine.'])
  t.match({ ...session, requests }, { status: 'completed', num_turns: 2, requests: 3 })
  t.equal(event, undefined)
  // Without Retry-After it is half a second.
  t.match(outputOf(ops.env, session.id), /answered 429 \(slow down\); once more in 1 s$/m)
})

for (const status of [408, 409, 503]) {
  t.test(`${status} is tried again`, async (t) => {
    const { session, requests } = await play([refusal(status, { message: 'not now' }), 'Fine.'])
    t.match({ ...session, requests }, { status: 'completed', num_turns: 2, requests: 3 })
  })
}

for (const status of [400, 401, 403, 404]) {
  t.test(`${status} is final`, async (t) => {
    const { session, event, requests } = await play([refusal(status, { message: 'no' })])
    t.match({ ...session, requests }, { status: 'failed', exit_code: 1, requests: 1 })
    t.match(event?.message, `failed: the model endpoint answered ${status} (no)`)
  })
}

t.test('malformed tool calls are told to the model, which mends them', async (t) => {
  const told: string[] = []
  const { session } = await play(({ step, results }) => {
    told.push(...results)
    if (step === 0) return calls(['recall', '{"service": '], ['no_such_tool', {}])
    if (step === 1) return calls(['recall', '"shop"'], ['recall', { limit: 'all', more: 1 }])
    // Tools of another tier are as unknown as any.
    if (step === 2) return calls(['run_operation', {}], ['recall', ''])
    return says('Mended.')
  })
  t.match(session, { status: 'completed', num_turns: 4 })
  t.match(told, [
    /^Error: The arguments are not JSON/,
    /^Error: There is no tool "no_such_tool"\. There are: list_services/,
    /^Error: the arguments must be one JSON object, such as \{"service":"…"\}; you sent "shop"$/,
    /^Error: limit must be a number from 1 to 100; you sent "all"\nmore is not known: /,
    /^Error: There is no tool "run_operation"/,
    'Nothing is remembered of that.',
  ])
})

t.test(
  'malformed tool calls without end, and an endless loop, end at the turn limit',
  async (t) => {
    for (const args of ['{"service": ', '{}']) {
      const { session, event, requests } = await play([calls(['list_services', args])])
      t.match({ ...session, requests }, { status: 'failed', num_turns: 6, requests: 6 }, args)
      t.match(event?.message, /failed: the limit of 6 turns \(OPS_MAX_TURNS\) is reached/)
    }
  },
)

t.test('answers without text and tool call end as failed', async (t) => {
  const { session, event, requests } = await play([''])
  t.match({ ...session, requests }, { status: 'failed', requests: 3 })
  t.match(event?.message, /neither a text nor a tool call/)
})

t.test('an endpoint that keeps failing ends the session as failed', async (t) => {
  const [outOfOrder, broken, nonsense] = await Promise.all(
    [
      refusal(500, { message: 'out of order' }),
      { body: 'data: {"choices":[{"delta":{"content":"A"}}]}\n\n', headers: STREAM, isCut: true },
      { headers: { 'content-type': 'text/html' }, body: '<p>data: no</p>\ndata: no\n' },
    ].map((answer) => startModel(t, [], { scheduled: [answer] })),
  )
  const nobody = `http://127.0.0.1:${await freePort()}/v1`
  const cases: readonly (readonly [Env | undefined, RegExp])[] = [
    [outOfOrder?.env, /failed: the model endpoint answered 500 \(out of order\), 5 times over/],
    [broken?.env, /the model endpoint (can't be reached|answered badly).*5 times/],
    [{ OPS_MODEL_URL: nobody }, /can't be reached: connect ECONNREFUSED/],
    [nonsense?.env, /answered with a web page: it is not a model endpoint/],
    [{ OPS_RUNNER: 'model' }, /failed: OPS_MODEL_URL is not set/],
  ]
  const each = cases.map(async ([given, said]) => {
    const server = await startOps(t, postgres, given)
    const session = await ended(server)
    t.match(session, { status: 'failed', exit_code: 1 }, String(said))
    t.notOk(session.num_turns, 'without a turn')
    const events = await eventsOf(server)
    t.match(events[0], { level: 'warning', service: 'gatehouse', message: said })
    await server.server.stop()
    return session
  })
  const sessions = await Promise.all(each)
  t.same(
    [outOfOrder, broken, nonsense].map((one) => one?.asked.length),
    [5, 5, 1],
  )
  t.same(
    sessions.slice(2).map(({ cost_usd }) => cost_usd),
    [null, null, null],
  )
})

t.test('a spent budget of the session, its chain or the day', async (t) => {
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  // 0.0011 dollars a turn.
  writeFileSync(prices, JSON.stringify({ default: { input: 1, output: 1 } }))
  const env = { ...model.env, OPS_PRICES: prices }
  const endless: Script = () => calls(['list_services', {}])

  const limited = await startOps(t, postgres, { ...env, OPS_SESSION_BUDGET_USD: '0.003' })
  await ended(limited)
  const alone = await play(endless, limited)
  t.match(alone.session, { status: 'failed', exit_code: 1, num_turns: 3, cost_usd: 0.0033 })
  t.match(
    alone.event?.message,
    'failed: the budget of the session of $0.003 (OPS_SESSION_BUDGET_USD) is spent: $0.0033',
  )
  model.answer((asked) =>
    asked.tier === 1 ? calls(['escalate', { reason: 'r', findings: 'f' }]) : endless(asked),
  )
  await trigger(limited)
  const child = await ended(limited)
  t.match(child, { tier: 2, status: 'failed', num_turns: 2, cost_usd: 0.0022 })
  const events = await eventsOf(limited)
  t.match(events[0]?.message, /budget of the escalation chain of \$0.003 .* is spent: \$0.0033/)
  await limited.server.stop()

  const daily = await startOps(t, postgres, { ...env, OPS_DAY_BUDGET_USD: '0.004' })
  await ended(daily)
  const second = await play(endless, daily)
  t.match(second.session, { status: 'failed', num_turns: 2 }, 'what others spent today counts')
  t.match(second.event?.message, /budget of the day of \$0.004 \(OPS_DAY_BUDGET_USD\) is spent/)
  const third = await play(endless, daily)
  t.match({ ...third.session, requests: third.requests }, { status: 'failed', requests: 0 })
})

t.test('without a price the tokens of a session are bounded', async (t) => {
  const message = { role: 'assistant', tool_calls: [call(0, 'a', 'list_services', '{}')] }
  const usage = { prompt_tokens: 999_999, completion_tokens: 1 }
  const scheduled = [whole(message, 'tool_calls', usage)]
  const endless = await startModel(t, [], { scheduled })
  const unpriced = await startOps(t, postgres, endless.env)
  t.match(await ended(unpriced), { status: 'failed', num_turns: 2, cost_usd: null })
  const events = await eventsOf(unpriced)
  t.match(events[0]?.message, "failed: the session's 2000000 tokens are spent")
})

t.test('a whole reply that arrives with an abort is a reply: it is paid for', async (t) => {
  const usage = { prompt_tokens: 1_000, completion_tokens: 100 }
  const { env } = await startModel(t, [whole({ content: 'All is well.' }, 'stop', usage)])
  const control = new AbortController()
  const charged: Usage[] = []
  const result = await completeChat(
    { url: env['OPS_MODEL_URL'] ?? '', key: MODEL_KEY },
    { model: 'm', messages: [] },
    {
      signal: control.signal,
      redact: createRedact(() => []),
      text: () => control.abort(),
      charge: (usage) => charged.push(usage),
    },
  )
  t.match(result, { text: 'All is well.' })
  t.match(charged, [{ prompt: 1_000, completion: 100 }])
})

function call(
  index: number | undefined,
  id: string | undefined,
  name: string,
  args: string,
): object {
  return {
    ...(index !== undefined && { index }),
    ...(id !== undefined && { id, type: 'function' }),
    function: { ...(name !== '' && { name }), arguments: args },
  }
}

/** Cut within lines and within characters: where a chunk ends means nothing. */
function stream(...deltas: readonly object[]): RawAnswer {
  const answer = sse(deltas, 'tool_calls', { prompt_tokens: 10, completion_tokens: 5 })
  const body = `: comment\n\n${answer.body}`.replaceAll('\n', '\r\n')
  return { ...answer, body, pieceBytes: 7 }
}

function infoEvent(message: string): string {
  return JSON.stringify({ level: 'info', message })
}

t.test('streams as endpoints write them: interleaved, without index, not streamed', async (t) => {
  const [one, two] = [infoEvent('one'), infoEvent('two')]
  const answers = [
    stream(
      { role: 'assistant', content: null, reasoning_content: 'hm' },
      { tool_calls: [call(0, 'a', 'record_event', ''), call(1, 'b', 'record_event', '')] },
      { tool_calls: [call(1, undefined, '', two.slice(0, 9))] },
      { tool_calls: [call(0, undefined, '', one.slice(0, 5))] },
      { tool_calls: [call(0, undefined, '', one.slice(5)), call(1, '', '', two.slice(9))] },
    ),
    stream(
      { tool_calls: [call(undefined, 'c', 'record_event', infoEvent('three'))] },
      { tool_calls: [call(undefined, 'd', 'record_event', infoEvent('four'))] },
    ),
    whole({ content: 'All was recorded.' }, 'stop', {
      ...{ prompt_tokens: 10, completion_tokens: 5 },
      prompt_tokens_details: { cached_tokens: 4 },
    }),
  ]
  const model = await startModel(t, [], { scheduled: answers })
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  const price = { input: 100_000, output: 200_000, cached_input: 50_000 }
  writeFileSync(prices, JSON.stringify({ default: price }))
  const ops = await startOps(t, postgres, { ...model.env, OPS_PRICES: prices })
  t.match(await ended(ops), { status: 'completed', num_turns: 3, cost_usd: 5.8 })
  const events = await eventsOf(ops)
  t.same(
    events.map(({ message }) => message),
    ['four', 'three', 'two', 'one'],
  )
  t.match(model.asked[2]?.messages.slice(2), [
    { role: 'assistant', tool_calls: [{ id: 'a', function: { arguments: one } }, { id: 'b' }] },
    { role: 'tool', tool_call_id: 'a', content: /^Recorded as event/ },
    { role: 'tool', tool_call_id: 'b' },
    { role: 'assistant', tool_calls: [{ id: 'c' }, { id: 'd' }] },
    { role: 'tool', tool_call_id: 'c' },
    { role: 'tool', tool_call_id: 'd' },
  ])
  t.equal(model.asked[0]?.path, '/v1/chat/completions')
})

t.test('a price table that is wrong stops start-up, in one line', async (t) => {
  const file = join(await temporaryFolder(t, 'prices'), 'prices.json')
  for (const [text, said] of [
    ['{', /Price table .*prices\.json is no JSON: /],
    ['{"m": {"input": -1, "output": 1}}', /Price table .* is wrong: m\.input must be >= 0/],
    ['{"m": {"input": 1}}', /Price table .* is wrong: m must have /],
  ] as const) {
    writeFileSync(file, text)
    await t.rejects(startOps(t, postgres, { ...ops.env, OPS_PRICES: file }), said)
  }
})
