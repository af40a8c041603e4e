import { randomInt } from 'node:crypto'
import { setImmediate as nextTurn, setTimeout as pause } from 'node:timers/promises'
import { t, type Test } from 'tap'
import { apiOf } from '../helpers/api.ts'
import { backends, embedded, postgres, type Backend } from '../helpers/backends.ts'
import {
  brokenOf,
  createSender,
  keepAlive,
  lostOf,
  send,
  startLoad,
  storedEvents,
  type Acked,
} from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { startReceiver } from '../helpers/replays.ts'
import { startServer } from '../helpers/server.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { until } from '../helpers/until.ts'

const ROUNDS = extent({ short: 1, long: 100 })
const SENDERS = 16
/** Latest moment of a crash, after the first acknowledgement of its round. */
const LATEST_MS = extent({ short: 300, long: 700 })
/** Crashes between two looks at the whole table: in between the server itself recovers. */
const LOOK_EVERY = extent({ short: 1, long: 10 })

// A process takes the embedded engine along. What PostgreSQL keeps, the long run of service-crashes.test.ts sees, too.
await t.test('kill -9 under load', async (t) => {
  for (const backend of extent<readonly Backend[]>({ short: [embedded], long: backends })) {
    await t.test(backend.name, (t) => underLoad(t, backend))
  }
})

async function underLoad(t: Test, backend: Backend) {
  const sender = createSender()
  const env = { ...(await backend.env(t)), ...sender.env }
  const acked: Acked[] = []
  const sent = new Map<string, string>()
  let unanswered = 0
  const look = async (when: string) => {
    const stored = await storedEvents(backend, env)
    t.same(lostOf(acked, stored), [], `${when}: all of ${acked.length} acknowledged are there`)
    t.same(brokenOf(sent, stored), [], `${when}: all of ${stored.size} stored are whole`)
  }

  /** The newest of the acknowledged are on their pages. */
  const start = async () => {
    const server = await startServerProcess(t, { services: ['hooks'], env })
    for (const { id, delivery } of acked.slice(-3)) {
      const page = await request(`${server.hooks}/log/${id}?tab=request`)
      t.ok(page.text.includes(delivery), `event ${id} after the restart, under its delivery id`)
    }
    return server
  }

  for (let round = 1; round <= ROUNDS; round++) {
    const server = await start()
    const load = startLoad(t, {
      base: () => server.hooks,
      sender,
      senders: SENDERS,
      size: 2_000,
    })
    await until(() => load.acked.length > 0, 'the first acknowledgement')
    await pause(randomInt(LATEST_MS))
    // Once it stands still, and its last answers are read, all senders lose their server.
    process.kill(server.pid, 'SIGSTOP')
    await nextTurn()
    const waiting = () =>
      load.sent.size - load.acked.length - load.refused.length - load.unanswered.length
    await until(() => waiting() === SENDERS, 'every sender to wait')
    const [exit] = await Promise.all([server.kill(), load.stop()])
    t.equal(exit.signal, 'SIGKILL')
    unanswered += load.unanswered.length
    t.same(load.refused, [], 'nothing was refused before')
    acked.push(...load.acked)
    for (const [delivery, sha256] of load.sent) sent.set(delivery, sha256)
    if (round % LOOK_EVERY === 0) await look(`round ${round}`)
  }
  t.ok(unanswered > ROUNDS, `${unanswered} requests lost their server`)
  const ids = acked.map(({ id }) => id)
  t.equal(new Set(ids).size, ids.length, 'no id was given twice')
  const server = await start()
  const delivery = await sender.delivery()
  const answer = await send(keepAlive(t, 1), server.hooks, delivery)
  t.ok(JSON.parse(answer.text).id > Math.max(...ids), 'the next id is above all')
}

await t.test(
  'kill -9 during a replay job: it goes on, and sends again what was under way',
  async (t) => {
    const [COUNT, ANSWERED] = [200, 20]
    const held = new Set<number>()
    let answersAll = false
    const receiver = await startReceiver(t, ({ headers }, response) => {
      const id = Number(headers['x-gatehouse-replay'])
      if (answersAll || receiver.received.length <= ANSWERED) response.writeHead(204).end()
      else held.add(id)
    })
    const target = new URL('/in', receiver.url)
    const env = { ...(await postgres.env(t)), HOOKS_REPLAY_TARGETS: target.host }
    const insert = `insert into hooks.events (provider, trust, headers, payload, received_at)
    select 'generic:ci', 3, '[]', '', now() from generate_series(1, ${COUNT}) returning id`
    const ids = (await postgres.query(env, insert)).map(({ id }) => Number(id))
    const first = await startServerProcess(t, { services: ['hooks'], env })
    const highest_id = ids.at(-1)
    const { json: started } = await apiOf(first.hooks)<{ job: { id: string } }>(
      'POST',
      '/events/replay',
      { provider: 'generic:ci', highest_id, target_url: target.href },
    )
    const jobAt = async (base: string) =>
      (await apiOf(base)<Record<string, unknown>>('GET', `/replay-jobs/${started.job.id}`)).json
    // So many are sent at a time: until one is answered no other leaves.
    const isUnderWay = async () =>
      held.size === 64 && (await jobAt(first.hooks))['delivered'] === ANSWERED
    await until(isUnderWay, 'the job to be under way')
    await first.kill()
    answersAll = true
    // Nobody sends what the dead process has claimed until its target could have answered. That time has passed.
    await postgres.query(env, 'update hooks.destination_deliveries set claimed_until = now()')
    const second = await startServer(t, { services: ['hooks'], env })
    const isOver = async () => (await jobAt(second.hooks))['state'] === 'finished'
    await until(isOver, 'the job to end')
    t.match(await jobAt(second.hooks), { count: COUNT, delivered: COUNT, failed: 0, waiting: 0 })
    const times = Map.groupBy(receiver.received, ({ headers }) =>
      Number(headers['x-gatehouse-replay']),
    )
    t.same(
      ids.map((id) => times.get(id)?.length),
      ids.map((id) => (held.has(id) ? 2 : 1)),
      'what was under way came twice, all else once',
    )
  },
)
