import { setTimeout as pause } from 'node:timers/promises'
import { t } from 'tap'
import { createSender } from '../helpers/deliveries.ts'
import { extent } from '../helpers/program.ts'
import { request } from '../helpers/http.ts'
import { linksServer } from '../helpers/links.ts'
import { inventoryFile } from '../helpers/ops.ts'
import { ownPostgres, run } from '../helpers/postgres.ts'
import { newSeed, randomOf, until } from '../helpers/until.ts'
import { startServerProcess } from '../helpers/server-process.ts'
import { assertKept, assertRefusals, startServiceLoad } from '../helpers/load.ts'
import { stallPostgres } from '../helpers/outages.ts'

// The promise: a PostgreSQL that stops, crashes or hangs, again and again, loses nothing of any service that was
// acknowledged; everybody else is told to come back, and all goes on by itself when it is there again.

const ROUNDS = extent({ short: 3, long: 60 })
const LONGEST_MS = extent({ short: 300, long: 8_000 })
const KINDS = ['fast', 'immediate', 'hangs'] as const

const seed = newSeed()

await t.test(`PostgreSQL goes and comes back under load, seed ${seed}`, async (t) => {
  const random = randomOf(seed)
  const cluster = await ownPostgres(t)
  const url = await cluster.createDatabase()
  const sender = createSender()
  const OPS_INVENTORY = await inventoryFile(t, { services: [] })
  const server = await startServerProcess(t, {
    env: { ...sender.env, OPS_INVENTORY, DATABASE_URL: url },
  })
  const { token } = await linksServer(server, { DATABASE_URL: url }).user('ann')
  const load = startServiceLoad(t, { server: () => server, sender, token })
  const counts = (): readonly number[] => [
    ...[load.deliveries.acked.length, load.acked.links.length, load.acked.memories.length],
  ]
  await until(() => counts().every((count) => count > 5), 'the load to be under way', 30_000)

  for (let round = 0; round < ROUNDS; round++) {
    const kind = KINDS[round < KINDS.length ? round : random(KINDS.length)] ?? 'fast'
    const refused = load.deliveries.refused.length
    if (kind === 'hangs') {
      const goOn = await stallPostgres(t, cluster)
      await pause(random(LONGEST_MS))
      goOn()
    } else {
      await cluster.stop(kind)
      await until(() => load.deliveries.refused.length > refused, 'senders to be refused', 30_000)
      await pause(random(LONGEST_MS))
      await cluster.start()
    }
    for (const base of [server.hooks, server.links, server.ops]) {
      const health = async () => (await request(`${base}/healthz`)).status === 200
      await until(health, `good health after "${kind}"`, 30_000)
    }
    const before = counts()
    await until(
      () => counts().every((count, n) => count > (before[n] ?? 0)),
      `all to be served again after "${kind}"`,
      30_000,
    )
  }
  await load.stop()
  assertRefusals(t, load)
  await assertKept(t, load, (text) => run(url, text))
  const bad = /handler failed|unhandled|TypeError|runner broke/
  t.same(
    server.logs().filter((line) => bad.test(line)),
    [],
    'no failure in the log',
  )
})
