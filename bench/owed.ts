import { destinationQueries as q } from '../db/hooks/send/destinations.ts'
import { settingsQueries } from '../db/hooks/settings.ts'
import type { Database } from '../db/client.ts'
import { openDatabase } from '../db/open.ts'
import { createLog } from '../kernel/log.ts'
import { retryDeliveries } from '../services/hooks/send/destinations/destinations.ts'
import { planStep } from '../services/hooks/send/destinations/open.ts'
import { removeStep } from '../services/hooks/send/destinations/removals.ts'
import { backends, type Backend } from '../test/helpers/backends.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'

/** Deliveries that are owed; `GATEHOUSE_BENCH_OWED` says another number, up to 10,000,000. */
const OWED = Number(process.env['GATEHOUSE_BENCH_OWED'] ?? 1_000_000)
/** The embedded engine is meant for less. */
const MAX_EMBEDDED = 100_000
/** Deliveries that are retried, the newest ones: of more each step costs the same. */
const MAX_RETRIED = 1_000_000
/** What a statement has. */
const DEADLINE_MS = 5_000
const NAME = 'erp'
/** Events that one statement stores. */
const STORED = 50_000
const BATCHES = 20

/**
 * A destination that is owed very many deliveries: each step of planning, claiming, listing, pruning and removing, and a
 * whole retry, through the client of the program with its deadline. `npm run bench -- owed`.
 */
export const owed: Part = {
  name: 'owed',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const [embedded, postgres] = backends
    return [
      ...(await measure(owner, postgres, OWED)),
      ...(await measure(owner, embedded, Math.min(OWED, MAX_EMBEDDED))),
    ]
  },
}

async function measure(owner: Owner, backend: Backend, rows: number): Promise<readonly Figure[]> {
  const env = await backend.env(owner)
  const where = { url: env['DATABASE_URL'], dataDirectory: env['GATEHOUSE_DATA_DIR'] ?? '' }
  const log = createLog(
    () => undefined,
    () => new Date(),
  )
  await using opened = await openDatabase(where, log)
  const { db } = opened
  await store(db, rows)
  const figures: Figure[] = []
  const add = (what: string, steps: readonly number[]) => {
    const name = `${backend.name}, ${rows} rows: ${what}`
    figures.push({ name: `${name} (median)`, value: median(steps), unit: 'ms' })
    figures.push(atMost(`${name} (longest)`, Math.max(...steps), DEADLINE_MS, 'ms'))
  }
  const work = { name: NAME, position: 0, behind: true, due: false, reads_payloads: false }
  add('plan', await stepsOf(async () => (await planStep(db, [work])).length > 0))
  await db.renewStatistics()
  const claim = { name: NAME, limit: 64, bytes: 4 * 1024 * 1024, seconds: 15 }
  add('claim of 64', await batches(() => q.claimDeliveries(db, claim)))
  add('list', await batches(() => q.listDestinations(db, { name: null, count_up_to: 10_000 })))
  const actor = { kind: 'command' } as const
  const retried = Math.min(rows, MAX_RETRIED)
  const since = { id: rows - retried + 1 }
  await postpone(db, since.id)
  const ms = await timed(() => retryDeliveries({ db, actor }, NAME, { dead: true, since }))
  const name = `${backend.name}, ${rows} rows: retry of ${retried}`
  figures.push({ name, value: ms, unit: 'ms' })
  add('prune of 500', await batches(() => prune(db)))
  await q.removeDestination(db, { name: NAME })
  let from: number | null = 0
  add('remove', await stepsOf(async () => (from = await removeStep(db, NAME, from ?? 0)) !== null))
  const left = await db.run({ name: 'left', text: 'select name from hooks.destinations' }, [])
  if (left.length > 0) throw new Error('the destination was not removed')
  return figures
}

/** Events of a destination that has looked at none of them. */
async function store(db: Database, rows: number): Promise<void> {
  for (let from = 0; from < rows; from += STORED) {
    const count = Math.min(STORED, rows - from)
    const text = `
      insert into hooks.events (provider, event_type, trust, headers, payload, received_at)
      select 'generic:lan', 'push', 3, '[]', '{"padding": "xxxxxxxxxxxxxxxxxxxxxxxx"}', at.received_at
        from hooks.lock_log() at, generate_series(1, ${count})`
    await db.transaction((tx) => tx.script(text))
  }
  const text = `
    insert into hooks.destinations (name, url, providers, event_types, members, ordered, timeout_s, position)
    values ('${NAME}', 'http://127.0.0.1:9/', '[]', '[]', '[]', false, 10, 0)`
  await db.transaction((tx) => tx.script(text))
}

/** Has those from an event on wait for another try. */
async function postpone(db: Database, from: number): Promise<void> {
  const text = `
    update hooks.destination_deliveries set next_at = now() + interval '1 hour', claimed_until = null
     where destination = '${NAME}' and event_id >= ${from}`
  await db.transaction((tx) => tx.script(text))
}

/** One batch of retention, as `services/hooks/settings.ts` makes it. */
async function prune(db: Database): Promise<void> {
  const batch = { below: Number.MAX_SAFE_INTEGER, limit: 500 }
  await db.transaction(async (tx) => {
    await q.lockDestinations(tx, {})
    const [given] = await q.giveUpEvents(tx, batch)
    if (given?.events !== 500) throw new Error(`${given?.events} deliveries were given up of 500`)
    await settingsQueries.pruneEvents(tx, batch)
  })
}

/** The milliseconds of each step until one says that it was the last. */
async function stepsOf(step: () => Promise<boolean>): Promise<readonly number[]> {
  const all: number[] = []
  for (let goesOn = true; goesOn;) {
    all.push(await timed(async () => (goesOn = await step())))
  }
  return all
}

async function batches(work: () => Promise<unknown>): Promise<readonly number[]> {
  const all: number[] = []
  for (let n = 0; n < BATCHES; n++) all.push(await timed(work))
  return all
}
