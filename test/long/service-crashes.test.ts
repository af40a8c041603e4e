import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { eachBackend } from '../helpers/backends.ts'
import { createSender } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { linksServer } from '../helpers/links.ts'
import {
  ended,
  inventoryFile,
  opsServer,
  startGate,
  type Event,
  type Session,
} from '../helpers/ops.ts'
import { newSeed, randomOf, until } from '../helpers/until.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { assertKept, startServiceLoad } from './service-load.ts'

// The promise: kill -9 of the server at any moment loses nothing of any service that was acknowledged, and leaves
// at most one session running, which fails with a critical event as soon as a server is there again.

const ROUNDS = extent({ short: 2, long: 100 })
/** Latest moment of a crash, after the first acknowledgements of its round. */
const LATEST_MS = 500
/** Crashes between two looks at all that is stored: in between the server itself recovers. */
const LOOK_EVERY = extent({ short: 1, long: 5 })

const seed = newSeed()

await eachBackend(t, `kill -9 under load of all services, seed ${seed}`, async (t, on) => {
  const random = randomOf(seed)
  const sender = createSender()
  // Every second round a session is caught in its work.
  const gate = await startGate(t)
  const empty = await inventoryFile(t, { services: [] })
  const env = { ...(await on.env(t)), ...sender.env }
  const start = (caught: boolean) =>
    startServerProcess(t, { env: { ...env, OPS_INVENTORY: caught ? gate.inventory : empty } })
  let server = await start(true)
  const { token } = await linksServer(server, env).user('ann')

  const load = startServiceLoad(t, { server: () => server, sender, token })
  const { acked, deliveries } = load
  const counts = () => [deliveries.acked.length, acked.links.length, acked.memories.length]

  for (let round = 1; round <= ROUNDS; round++) {
    const caught = round % 2 === 1
    const before = counts()
    await until(
      () => counts().every((count, n) => count > (before[n] ?? 0)),
      'work to be under way',
      30_000,
    )
    if (caught) await until(() => gate.waiting() > 0, 'a session to be at work', 30_000)
    const { json: list } = await opsServer(server, env).api<{ sessions: readonly Session[] }>(
      'GET',
      '/sessions?limit=1',
    )
    await pause(random(LATEST_MS))
    t.match(await server.kill(), { signal: 'SIGKILL' }, `round ${round}`)
    if (round % LOOK_EVERY === 0) await assertKept(t, load, (text) => on.query(env, text))

    gate.letThrough()
    server = await start(!caught)
    const ops = opsServer(server, env)
    if (!caught) continue
    const [interrupted] = list.sessions
    if (interrupted === undefined) throw new Error('there was no session')
    const found = await ended(ops, interrupted.id)
    t.match(found, { status: 'failed', exit_code: 1, ended_at: String })
    const { json } = await ops.api<{ events: readonly Event[] }>('GET', '/events')
    t.match(
      json.events.find(({ session_id }) => session_id === interrupted.id),
      { level: 'critical', message: /the process that ran it is gone/ },
    )
  }
  gate.open()
  await load.stop()
  t.same(deliveries.refused, [], 'no delivery was refused')
  t.match(await server.stop(), { code: 0 })
})
