import { run } from '../test/helpers/postgres.ts'
import { add, groupOf, queueEnv, settled, startRedis } from '../test/helpers/queue.ts'
import { postForm } from '../test/helpers/hooks.ts'
import { until } from '../test/helpers/until.ts'
import { readBare } from './helpers/bare-queue.ts'
import { freshDatabase } from './helpers/database.ts'
import { atLeast, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const ENTRIES = 20_000
const ROUNDS = 5
/** Entries of one read, as the product reads them. */
const BATCH = 256
const PAYLOAD = JSON.stringify({ padding: 'x'.repeat(200) })
const BOUND = 0.3
const [STREAM, BARE_GROUP] = ['bench', 'bare']

/**
 * A Redis stream into PostgreSQL, beside a loop of XREADGROUP and XACK over the same entries, which stores nothing, in
 * alternating rounds. The time of Gatehouse is from switching the channel on until the last entry is acknowledged.
 */
export const queue: Part = {
  name: 'queue',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const url = await freshDatabase(owner)
    const redis = await startRedis(owner)
    const env = { DATABASE_URL: url, ...queueEnv(redis, STREAM) }
    const server = await startBenchServer(owner, env)
    await redis.send('XGROUP', 'CREATE', STREAM, BARE_GROUP, '$')
    async function enable(enabled: boolean): Promise<void> {
      const path = `/providers/queue:${STREAM}/enabled`
      const { status } = await postForm(server.hooks, path, { enabled: String(enabled) })
      if (status !== 200) throw new Error(`${path} answered ${status}, expected 200`)
    }

    const rates: Record<'bare' | 'gatehouse', number[]> = { bare: [], gatehouse: [] }
    for (let round = -1; round < ROUNDS; round++) {
      await enable(false)
      await until(async () => (await clientsOf(redis)) === 1, 'the channel to be left')
      await Promise.all(
        Array.from({ length: ENTRIES }, () => add(redis, STREAM, 'payload', PAYLOAD)),
      )
      const bareMs = await readBare(redis.url, STREAM, BARE_GROUP, ENTRIES, BATCH)
      const { lag } = await groupOf(redis, STREAM)
      if (lag !== ENTRIES) throw new Error(`${lag} entries wait, expected ${ENTRIES}`)
      const gatehouseMs = await timed(async () => {
        await enable(true)
        await settled(redis, STREAM, 120_000)
      })
      // The first round lets the code become fast: it is made, not measured.
      if (round < 0) continue
      rates.bare.push((ENTRIES * 1_000) / bareMs)
      rates.gatehouse.push((ENTRIES * 1_000) / gatehouseMs)
    }
    const [row] = await run(url, 'select count(*)::int as events from hooks.events')
    const stored = Number(row?.['events'])
    const sent = ENTRIES * (ROUNDS + 1)
    return [
      { name: 'bare (median)', value: median(rates.bare), unit: 'entries/s' },
      { name: 'Gatehouse (median)', value: median(rates.gatehouse), unit: 'entries/s' },
      atLeast('Gatehouse / bare', median(rates.gatehouse) / median(rates.bare), BOUND),
      {
        name: 'events in the database',
        value: stored,
        unit: '',
        bound: `${sent}, all of them`,
        kept: stored === sent,
      },
    ]
  },
}

async function clientsOf(redis: { send(...command: readonly string[]): Promise<unknown> }) {
  return String(await redis.send('CLIENT', 'LIST'))
    .trim()
    .split('\n').length
}
