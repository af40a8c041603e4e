import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { ended, eventsOf, startOps, trigger } from '../helpers/ops.ts'
import { startReceiver } from '../helpers/replays.ts'
import { until } from '../helpers/until.ts'

/** A piece of an answer as it streams. */
function delta(content: string) {
  return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`
}

// A real minute, by the clock of the system.
t.test('a stream that never begins is timed out; one that stalls can be stopped', async (t) => {
  let stalls = false
  const endpoint = await startReceiver(t, (_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (stalls) response.write(delta('I will look'))
    else response.flushHeaders()
  })
  const ops = await startOps(t, postgres, { OPS_MODEL_URL: `${endpoint.url}/v1` })
  const session = await ended(ops, undefined, 90_000)
  t.match(session, { status: 'timed_out', exit_code: 1, num_turns: 0 })
  const events = await eventsOf(ops)
  t.match(events, [{ level: 'warning', session_id: session.id, service: 'gatehouse' }])
  t.match(events[0]?.message, /timed_out: it gave no output within 6\d s \(OPS_FIRST_OUTPUT_S\)$/)
  t.equal(endpoint.received.length, 1)

  stalls = true
  const { id } = await trigger(ops)
  await until(() => endpoint.received.length === 2, 'the second request')
  await ops.server.stop()
  const text = 'select status, exit_code from ops.sessions where id = $1'
  t.same(await postgres.query(ops.env, text, [id]), [{ status: 'stopped', exit_code: 1 }])
})
