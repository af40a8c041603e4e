import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { t, type Test } from 'tap'
import { createCliRunner } from '../../../services/ops/agent/runners/cli.ts'
import { createModelRunner } from '../../../services/ops/agent/runners/model.ts'
import { openOffers } from '../../../services/ops/agent/tools/offers.ts'
import { claudeResult, makeAgent, processesWith } from '../../helpers/agents.ts'
import { startReceiver } from '../../helpers/replays.ts'
import { openTimedSessions } from './timed-sessions.ts'
import { until } from '../../helpers/until.ts'

/** Nobody else sleeps that long: by it the processes of a test are found. */
const long = `${300_000 + process.pid}.5`
const sleepers = () => processesWith(`sleep ${long}`)
// When the product has failed to.
t.teardown(() => sleepers().forEach((pid) => process.kill(pid, 'SIGKILL')))

const agent = await makeAgent(t)
const offers = openOffers(randomBytes, 'test')
const madeAsUsed: typeof offers.make = (context) => {
  const offer = offers.make(context)
  offer.use.hasCome = true
  return offer
}
const { query, sessions, later, logged, start, ended, eventsOf, linesOf } =
  await openTimedSessions(t, 'deadlines', (parts) =>
    createCliRunner({
      ...parts,
      command: () => agent.command.split(' '),
      // No listener runs here, so the agent can't come.
      offers: { ...offers, make: madeAsUsed },
      toolsUrl: () => 'http://127.0.0.1:9/mcp/session',
    }),
  )

/** A session is timed out for this reason, and nothing of it survives. */
async function timedOut(t: Test, id: number, why: string | RegExp) {
  const session = await ended(id)
  t.match(session, { status: 'timed_out', cost_usd: null })
  t.not(session?.exit_code, 0, 'it has no good exit code')
  t.match(await eventsOf(id), [{ level: 'warning', message: why }])
  t.same(sleepers(), [])
}

/** A piece of a model's answer as it streams. */
function delta(content: string) {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
}

t.test('a session without a first output is timed out', async (t) => {
  agent.does(`setsid sleep ${long} & sleep ${long}\n`)
  const id = await start()
  await until(() => sleepers().length === 2, 'its processes', 30_000, 250)
  later(61)
  await timedOut(t, id, /gave no output within \d+ s/)
})

t.test('a session that never comes to an end is timed out', async (t) => {
  const step = join(agent.folder, 'step')
  agent.does(`while :; do cat ${step}; sleep 0.1; done\n`)
  writeFileSync(step, 'step 0\n')
  const id = await start()
  for (let at = 0; at < 6; at++) {
    const hasSaid = async () => JSON.stringify(await linesOf(id)).includes(`step ${at}`)
    await until(hasSaid, `output of step ${at}`)
    later(101)
    writeFileSync(step, `step ${at + 1}\n`)
  }
  await timedOut(t, id, 'it took over 10 minutes')
})

t.test(
  'a session whose row was ended by another instance is stopped, and writes nothing',
  async (t) => {
    agent.does(`trap '' INT TERM; while :; do echo here; sleep 0.2; sleep ${long} & done\n`)
    const id = await start()
    await until(() => sleepers().length > 0, 'its children', 30_000, 250)
    const text = `update ops.sessions set status = 'failed', ended_at = now(), exit_code = 1 where id = $1`
    await query(text, [id])
    await until(() => sleepers().length === 0, 'the end of its children', 30_000, 250)
    agent.says([claudeResult()])
    const next = await until(
      () => sessions.start({ tier: 1, trigger: 'manual', prompt: null }),
      'the next session',
    )
    t.match(await ended(next.id), { status: 'completed' })
    t.match(await ended(id), { status: 'failed', exit_code: 1, cost_usd: null })
    t.same(await eventsOf(id), [])
  },
)

t.test('a session whose end could not be written fails when its lease lapses', async (t) => {
  await query(
    `alter table ops.sessions add constraint no_end check (status <> 'completed') not valid`,
  )
  agent.says([claudeResult()])
  const id = await start()
  await until(() => logged().includes('session not finished'), 'its failure to end')
  later(21)
  t.match(await ended(id), { status: 'failed', exit_code: 1 })
  t.match(await eventsOf(id), [{ level: 'critical', service: 'gatehouse' }])
  await query('alter table ops.sessions drop constraint no_end')
  t.match(await ended(await start()), { status: 'completed' }, 'the next one runs')
})

t.test('a model that stalls is timed out; its words are kept', async (t) => {
  let stream: ServerResponse | undefined
  const endpoint = await startReceiver(t, (_, response) => {
    stream = response
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(delta('The disk is full.\nI'))
  })
  const { start, later, outlives, ended, linesOf } = await openTimedSessions(t, 'stall', (parts) =>
    createModelRunner({
      ...parts,
      loadingMs: () => 0,
      endpoint: () => ({ url: `${endpoint.url}/v1`, key: undefined }),
      prices: { of: async () => ({ input: 10, output: 10 }) },
    }),
  )
  const id = await start()
  await until(async () => (await linesOf(id)).length === 1, 'its first line')
  await outlives(150)
  stream?.write(delta(' will look.\nFirst'))
  await until(async () => (await linesOf(id)).length === 2, 'its second line')
  // Its silence is longer than is allowed, but its comments say that it lives.
  const beats = setInterval(() => stream?.write(': keep-alive\n\n'), 50)
  await outlives(100)
  await outlives(100)
  clearInterval(beats)
  stream?.write(delta(' at the logs.\nThen'))
  await until(async () => (await linesOf(id)).length === 3, 'its third line: each sign renews it')
  await outlives(100)
  later(81)
  t.match(await ended(id), { status: 'timed_out', exit_code: 1, num_turns: 0, summary: null })
  t.ok(((await ended(id))?.cost_usd ?? 0) > 0, 'what was written has its price')
  const texts = (await linesOf(id)).map(({ kind, text }) => `${kind}: ${text}`)
  t.same(texts.slice(0, 4), [
    'text: The disk is full.',
    'text: I will look.',
    'text: First at the logs.',
    'text: Then',
  ])
  t.match(texts[4], /^error: Session timed_out: it was silent for \d+ s \(OPS_IDLE_S\)$/)
  await until(() => stream?.destroyed, 'the connection to be given up')
  t.equal(endpoint.received.length, 1, 'it has asked once')
})
