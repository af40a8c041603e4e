import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { ended, startOps } from '../helpers/ops-setup.ts'
import type { Event } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/receiver.ts'

const [, postgres] = backends

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

function stream(...deltas: readonly object[]): string {
  const chunks = [
    ...deltas.map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] })),
    { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }], usage: null },
    { choices: [], usage: { prompt_tokens: 10, completion_tokens: 5 } },
  ]
  const lines = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`)
  return `: comment\r\n\r\n${lines.join('')}data: [DONE]\r\n\r\n`
}

function event(message: string): string {
  return JSON.stringify({ level: 'info', message })
}

t.test('streams as endpoints write them: interleaved, without index, not streamed', async (t) => {
  const [one, two] = [event('one'), event('two')]
  const answers = [
    stream(
      { role: 'assistant', content: null, reasoning_content: 'hm' },
      { tool_calls: [call(0, 'a', 'record_event', ''), call(1, 'b', 'record_event', '')] },
      { tool_calls: [call(1, undefined, '', two.slice(0, 9))] },
      { tool_calls: [call(0, undefined, '', one.slice(0, 5))] },
      { tool_calls: [call(0, undefined, '', one.slice(5)), call(1, '', '', two.slice(9))] },
    ),
    stream(
      { tool_calls: [call(undefined, 'c', 'record_event', event('three'))] },
      { tool_calls: [call(undefined, 'd', 'record_event', event('four'))] },
    ),
    JSON.stringify({
      choices: [{ index: 0, message: { content: 'All was recorded.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 5 },
    }),
  ]
  let at = 0
  const endpoint = await startReceiver(t, (_, response) => {
    const text = answers[at++] ?? ''
    const type = text.startsWith('{') ? 'application/json' : 'text/event-stream'
    response.writeHead(200, { 'content-type': type })
    // Cut within lines and within characters: where a chunk ends means nothing.
    const bytes = Buffer.from(text)
    for (let from = 0; from < bytes.length; from += 7)
      response.write(bytes.subarray(from, from + 7))
    response.end()
  })
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  writeFileSync(prices, JSON.stringify({ default: { input: 100_000, output: 200_000 } }))
  const env = { OPS_MODEL_URL: `${endpoint.url}/v1`, OPS_PRICES: prices }
  const ops = await startOps(t, postgres, env)
  t.match(await ended(ops), { status: 'completed', num_turns: 3, cost_usd: 6 })
  const { json } = await ops.api<{ events: readonly Event[] }>('GET', '/events')
  t.same(
    json.events.map(({ message }) => message),
    ['four', 'three', 'two', 'one'],
  )
  const last = JSON.parse(endpoint.received[2]?.body.toString() ?? '')
  t.match(last.messages.slice(2), [
    { role: 'assistant', tool_calls: [{ id: 'a', function: { arguments: one } }, { id: 'b' }] },
    { role: 'tool', tool_call_id: 'a', content: /^Recorded as event/ },
    { role: 'tool', tool_call_id: 'b' },
    { role: 'assistant', tool_calls: [{ id: 'c' }, { id: 'd' }] },
    { role: 'tool', tool_call_id: 'c' },
    { role: 'tool', tool_call_id: 'd' },
  ])
  t.equal(endpoint.received[0]?.path, '/v1/chat/completions')
})

t.test('a price table that is wrong stops start-up, in one line', async (t) => {
  const file = join(await temporaryFolder(t, 'prices'), 'prices.json')
  for (const [text, said] of [
    ['{', /Price table .*prices\.json is no JSON: /],
    ['{"m": {"input": -1, "output": 1}}', /Price table .* is wrong at \/m\/input: must be >= 0/],
    ['{"m": {"input": 1}}', /Price table .* is wrong at \/m: /],
  ] as const) {
    writeFileSync(file, text)
    await t.rejects(startOps(t, postgres, { OPS_PRICES: file }), said)
  }
})
