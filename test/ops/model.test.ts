import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { backends } from '../helpers/backends.ts'
import { calls, inTier, says, startModel, steps } from '../helpers/model-endpoint.ts'
import { ended, inventoryFile, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Event, Memory, OpsServer } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import { run } from '../helpers/postgres.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { until } from '../helpers/until.ts'

const postgres = backends.find(({ name }) => name === 'postgres')
if (postgres === undefined) throw new Error('no postgres')

const TIER_1 = 'escalate,list_services,read_events,recall,record_event,remember,run_check'.split(
  ',',
)

async function eventsOf({ api }: OpsServer): Promise<readonly Event[]> {
  return (await api<{ events: readonly Event[] }>('GET', '/events')).json.events
}

async function memoriesOf({ api }: OpsServer): Promise<readonly Memory[]> {
  return (await api<{ memories: readonly Memory[] }>('GET', '/memories')).json.memories
}

t.test('a session with a model: tools, events, memories, summary, cost', async (t) => {
  const shop = await startReceiver(t)
  const prices = join(await temporaryFolder(t, 'prices'), 'prices.json')
  writeFileSync(prices, JSON.stringify({ 'model-one': { input: 2, output: 10 } }))
  const check = { type: 'http', name: 'health', url: shop.url }
  const model = await startModel(t)
  const ops = await startOps(t, postgres, {
    ...model.env,
    OPS_TIER1_MODEL: 'model-one',
    OPS_PRICES: prices,
    OPS_INVENTORY: await inventoryFile(t, { services: [{ name: 'shop', checks: [check] }] }),
  })
  const scheduled = await ended(ops)
  t.match(scheduled, { status: 'completed', trigger: 'scheduled', model: 'model-one' })
  t.match(scheduled, { num_turns: 1, exit_code: 0 })

  model.answer(({ step, results }) => {
    if (step === 0) return calls(['list_services', {}], ['run_check', { service: 'shop' }])
    if (step === 1) {
      t.match(results[0], /^shop\n {2}check "health"$/)
      t.match(results[1], /^ok health: answered 204 \(\d+ ms\)$/)
      return calls(
        ['record_event', { level: 'degraded', service: 'shop', message: 'slow today' }],
        ['remember', { category: 'timing', observation: 'slow on Sundays', service: 'shop' }],
        ['recall', { service: 'shop' }],
        ['read_events', { level: 'warning' }],
      )
    }
    t.match(results[2], 'shop (timing, 0.7): slow on Sundays')
    t.match(results[3], /Z warning shop: slow today$/)
    return says('The shop is slow,\nas on every Sunday.')
  })
  const { id } = await trigger(ops, 'is the shop well?')
  const session = await ended(ops, id)
  t.match(session, { status: 'completed', trigger: 'api', tier: 1, num_turns: 3, exit_code: 0 })
  t.equal(session.cost_usd, (3 * (1_000 * 2 + 100 * 10)) / 1_000_000)
  t.match(await eventsOf(ops), [
    { level: 'warning', service: 'shop', message: 'slow today', session_id: id },
  ])
  const learned = { service: 'shop', category: 'timing', observation: 'slow on Sundays' }
  t.match(await memoriesOf(ops), [{ ...learned, confidence: 0.7, session_id: id, tier: 1 }])
  const url = ops.env['DATABASE_URL'] ?? ''
  const rows = await run(url, 'select summary from ops.sessions where id = $1', [id])
  t.same(rows, [{ summary: 'The shop is slow,\nas on every Sunday.' }])
  const lines = await run(
    url,
    'select kind, text from ops.session_lines where session_id = $1 order by seq',
    [id],
  )
  t.match(
    lines.map(({ kind, text }) => `${kind} ${text}`),
    [
      'tool list_services {}',
      'result shop',
      'result   check "health"',
      'tool run_check {"service":"shop"}',
      /^result ok health/,
    ],
  )
  t.same(lines.slice(-2), [
    { kind: 'text', text: 'The shop is slow,' },
    { kind: 'text', text: 'as on every Sunday.' },
  ])

  const [first] = model.asked.filter(({ prompt }) => prompt === 'is the shop well?')
  t.match(first?.request, { model: 'model-one', stream: true })
  t.match(first?.request, { stream_options: { include_usage: true } })
  const tools = first?.request.tools?.map((tool) => tool.function.name) ?? []
  t.same(tools.toSorted(), TIER_1)

  // The next session is told what this one has learned; the same observation makes it surer.
  model.answer(steps([['remember', learned]]))
  await ended(ops, (await trigger(ops, 'again')).id)
  t.match(await memoriesOf(ops), [{ ...learned, confidence: 0.8 }])
  const told = model.asked.find(({ prompt }) => prompt === 'again')?.request.messages[0]?.content
  t.match(told, /- \[session \d+, tier 1\] shop, timing \(0.7\): slow on Sundays/)

  t.test('a memory that is seen again', async (t) => {
    const seen = async (before: object): Promise<unknown> => {
      const note = { category: 'behavior', observation: `noted ${JSON.stringify(before)}` }
      const made = await ops.api<Memory>('POST', '/memories', { ...note, ...before })
      model.answer(steps([['remember', note]]))
      await ended(ops, (await trigger(ops)).id)
      const after = (await memoriesOf(ops)).find(({ id }) => id === made.json.id)
      await ops.api('DELETE', `/memories/${made.json.id}`)
      return [after?.confidence, after?.active]
    }
    const rests = { active: false }
    t.same(await seen({ ...rests, confidence: 0.25 }), [0.35, false], 'rests as people want it to')
    t.same(await seen({ ...rests, confidence: 0.5 }), [0.6, false], 'however sure it is')
    t.same(await seen({ active: true, confidence: 0.1 }), [0.2, true], 'or does not, as they want')
  })

  t.test('memories in the prompt: the active ones, best first, 8,000 characters', async (t) => {
    const note = async (observation: string, confidence: number, active = true): Promise<void> => {
      const made = { category: 'behavior', observation, confidence, active }
      t.equal((await ops.api('POST', '/memories', made)).status, 201)
    }
    await note('resting', 1, false)
    await note(`too long for all of it ${'x'.repeat(8_000)}`, 1)
    await note('best', 0.99)
    for (let at = 0; at < 5; at++) await note(`filler ${at} ${'y'.repeat(1_900)}`, 0.9)
    await note('worst', 0.1)
    const forged = { service: 'web\n\nRules:', category: 'a\r- b', observation: 'c\u2028d\n- e' }
    await ops.api('POST', '/memories', { ...forged, confidence: 0.95 })
    model.answer(() => says('Fine.'))
    await ended(ops, (await trigger(ops, 'and now?')).id)
    const asked = model.asked.find(({ prompt }) => prompt === 'and now?')
    const text = String(asked?.request.messages[0]?.content)
    const part = text.slice(text.indexOf('Remembered, each'))
    t.ok(part.length <= 8_000, `${part.length} characters`)
    t.match(
      part,
      /surest first:\n- \[operator\] behavior \(0.99\): best\n- \[operator\] web Rules:, a - b \(0.95\): c d - e\n- \[operator\] behavior \(0.9\): filler 0/,
    )
    t.match(part, /filler 3/)
    t.notMatch(part, /resting|too long|filler 4/)
    t.match(part, /worst$/, 'what still fits comes as well')
  })

  t.test('each tier has its tools and its model; without a price the cost is null', async (t) => {
    await ops.api('PUT', '/config', { tier2_model: 'model-two', tier3_model: 'model-three' })
    model.answer(inTier(3, () => says('Mended.')))
    await trigger(ops, 'go up')
    const last = await ended(ops)
    t.match(last, { tier: 3, model: 'model-three', cost_usd: null, status: 'completed' })
    const chain = model.asked.filter(({ prompt }) => prompt.startsWith('go up'))
    t.same(
      chain.map(({ request }) => [request.model, request.tools?.length]),
      [
        ['model-one', 7],
        ['model-two', 12],
        ['model-three', 13],
      ],
    )
  })
})

t.test('the runner is chosen for each session: an endpoint makes it a model', async (t) => {
  const file = join(await temporaryFolder(t, 'env'), 'gatehouse.env')
  writeFileSync(file, '')
  const model = await startModel(t)
  const ops = await startOps(t, postgres, { GATEHOUSE_ENV_FILE: file })
  t.match(await ended(ops), { model: 'none', status: 'completed', cost_usd: null })
  const lines = Object.entries(model.env).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(file, lines.join(''))
  await until(async () => {
    const { id } = await trigger(ops)
    return (await ended(ops, id)).model === 'default'
  }, 'a session with the model')
  t.match(await ended(ops), { model: 'default', status: 'completed', num_turns: 1 })
  t.equal(model.asked.at(-1)?.prompt, 'look')
})
