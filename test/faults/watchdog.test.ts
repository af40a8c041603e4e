import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { createSender, lostOf, metricOf, startLoad, storedEvents } from '../helpers/deliveries.ts'
import { request } from '../helpers/http.ts'
import { linesOf } from '../helpers/outages.ts'
import { startServerProcess, type ServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const BLOCKED = [process.execPath, '--import', './test/faults/block-thread.ts', 'server.ts']
/** Longer than a silence that is not logged. */
const SILENCE_MS = 1_600

/** The lines of a log that say something. */
function linesThat(server: ServerProcess, said: string) {
  return linesOf(server).filter(({ msg }) => msg === said)
}

async function longest(server: ServerProcess) {
  const { text } = await request(`${server.hooks}/metrics`)
  return metricOf(text, 'gatehouse_longest_silence_seconds')
}

await t.test('a silence of the thread is told, with what began last', async (t) => {
  const env = { ...(await postgres.env(t)), BLOCK_MS: `${SILENCE_MS}` }
  const services = ['hooks'] as const
  const server = await startServerProcess(t, { env, services, program: BLOCKED })
  const before = await longest(server)
  // A process that was stopped, as by a debugger or with its machine, was not silent.
  process.kill(server.pid, 'SIGSTOP')
  await pause(SILENCE_MS)
  process.kill(server.pid, 'SIGCONT')
  t.equal(await longest(server), before)

  const { headers } = await request(`${server.hooks}/log/1?block`)
  const request_id = headers['x-request-id']
  const ofRequest = () =>
    linesThat(server, 'the thread is silent').filter((line) => line['request_id'] === request_id)
  const silent = await until(() => ofRequest()[0], 'the line of the silence')
  const [goesOn] = await until(() => {
    const lines = linesThat(server, 'the thread goes on')
    return lines.length > 0 && lines
  }, 'the line of its end')
  t.match(silent, { level: 'warn', last_begun: 'GET /log/:id' })
  const ms = Number(goesOn?.['ms'])
  t.ok(ms >= 1_000, `${ms} ms`)
  t.ok(((await longest(server)) ?? 0) >= 1)
  t.equal(ofRequest().length, 1)
})

await t.test('after a long silence the process is ended, and nothing is lost', async (t) => {
  const sender = createSender()
  const services = ['hooks'] as const
  const env = { ...(await postgres.env(t)), ...sender.env }
  const server = await startServerProcess(t, {
    services,
    program: BLOCKED,
    mayExit: true,
    env: { ...env, BLOCK_MS: '600000', GATEHOUSE_WATCHDOG_S: '3' },
  })
  const base = () => server.hooks
  const load = startLoad(t, { base, sender, senders: 8, size: 2_000 })
  await until(() => load.acked.length > 20, 'acknowledgements')
  await request(`${server.hooks}/healthz?block`)
  const [exit] = await Promise.all([server.exited, load.stop()])
  t.equal(exit.signal, 'SIGKILL')
  const [line] = linesThat(server, 'ended, because the thread was silent')
  t.match(line, { level: 'error', ms: Number, last_begun: String })
  t.same(lostOf(load.acked, await storedEvents(postgres, env)), [])
})

await t.test('GATEHOUSE_WATCHDOG_S=0 turns it off', async (t) => {
  const env = { ...(await postgres.env(t)), BLOCK_MS: `${SILENCE_MS}`, GATEHOUSE_WATCHDOG_S: '0' }
  const server = await startServerProcess(t, { env, services: ['hooks'], program: BLOCKED })
  await request(`${server.hooks}/healthz?block`)
  await pause(SILENCE_MS)
  t.equal(await longest(server), 0)
  t.same(linesThat(server, 'the thread goes on'), [])
})
