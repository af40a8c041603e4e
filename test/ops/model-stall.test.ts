import type { ServerResponse } from 'node:http'
import { t } from 'tap'
import { createModelRunner } from '../../services/ops/runners/model.ts'
import { backends } from '../helpers/backends.ts'
import { ended, startOps, trigger } from '../helpers/ops-setup.ts'
import type { Event } from '../helpers/ops-setup.ts'
import { startReceiver } from '../helpers/receiver.ts'
import { openTimedSessions } from '../helpers/sessions-setup.ts'
import { until } from '../helpers/until.ts'

/** A piece of an answer as it streams. */
function delta(content: string): string {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
}

// A real minute: that an agent which never says anything is given up is what this is about.
t.test('a stream that never begins is timed out; one that stalls can be stopped', async (t) => {
  let stalls = false
  const endpoint = await startReceiver(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(stalls ? delta('I will look') : ': keep-alive\n\n')
  })
  const [, backend] = backends
  const ops = await startOps(t, backend, { OPS_MODEL_URL: `${endpoint.url}/v1` })
  const session = await ended(ops, undefined, 90_000)
  t.match(session, { status: 'timed_out', exit_code: 1, num_turns: 0 })
  const { json } = await ops.api<{ events: readonly Event[] }>('GET', '/events')
  t.match(json.events, [{ level: 'warning', session_id: session.id, service: 'gatehouse' }])
  t.match(json.events[0]?.message, /timed_out: it gave no output within 6\d s$/)
  t.equal(endpoint.received.length, 1)

  stalls = true
  const { id } = await trigger(ops)
  await until(() => endpoint.received.length === 2, 'the second request')
  await ops.server.stop()
  t.ok(id > session.id)
})

t.test('a stream that stalls after its first words is timed out; they are kept', async (t) => {
  let stream: ServerResponse | undefined
  const endpoint = await startReceiver(t, (_, response) => {
    stream = response
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(delta('The disk is full.\nI'))
    // Only the connection lives: that is no sign of the model.
    const beats = setInterval(() => response.write(': keep-alive\n\n'), 50)
    response.on('close', () => clearInterval(beats))
  })
  const { start, later, outlives, ended, eventsOf, linesOf } = await openTimedSessions(
    t,
    'stall',
    (parts) =>
      createModelRunner({
        ...parts,
        endpoint: () => ({ url: `${endpoint.url}/v1`, key: undefined }),
        prices: { of: async () => ({ input: 10, output: 10 }) },
      }),
  )
  const id = await start()
  await until(async () => (await linesOf(id)).length === 1, 'its first line')
  await outlives(170)
  stream?.write(delta(' will look.\nFirst'))
  await until(async () => (await linesOf(id)).length === 2, 'its second line')
  await outlives(170)
  stream?.write(delta(' at the logs.\nThen'))
  await until(async () => (await linesOf(id)).length === 3, 'its third line: each sign renews it')
  await outlives(100)
  later(81)
  t.match(await ended(id), { status: 'timed_out', exit_code: 1, num_turns: 0, summary: null })
  t.ok(((await ended(id))?.cost_usd ?? 0) > 0, 'what was written has its price')
  t.match(await eventsOf(id), [
    { level: 'warning', service: 'gatehouse', message: /timed_out: it was silent for 18\d s$/ },
  ])
  t.match(
    (await linesOf(id)).map(({ kind, text }) => `${kind}: ${text}`),
    [
      ...[
        'text: The disk is full.',
        'text: I will look.',
        'text: First at the logs.',
        'text: Then',
      ],
      /^error: Session timed_out: it was silent for 18\d s$/,
    ],
  )
  await until(() => stream?.destroyed, 'the connection to be given up')
  t.equal(endpoint.received.length, 1, 'it is not asked again')

  const next = await start()
  await until(async () => (await linesOf(next)).length === 1, 'the next session to run')
})
