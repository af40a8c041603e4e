import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { cursorAt } from '../services/hooks/log/events/filter.ts'
import { createSender, type Sender } from '../test/helpers/deliveries.ts'
import { postForm } from '../test/helpers/hooks.ts'
import { run } from '../test/helpers/postgres.ts'
import { expectFree, filledDatabases } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import {
  ONE_TEXT,
  QUIET_PROVIDER,
  QUIET_TYPE,
  RARE_TEXT,
  seedGrowth,
} from './helpers/growth-seed.ts'
import {
  atMost,
  median,
  quantile,
  timed,
  type Figure,
  type Owner,
  type Part,
} from './helpers/measure.ts'
import { startPacedLoad, type PacedLoad } from './helpers/paced.ts'
import type { PacedResult } from './helpers/paced-worker.ts'
import { portOf, startBenchServer } from './helpers/server.ts'

const LARGE = Number(process.env['BENCH_EVENTS'] ?? 10_000_000)
const SMALL = LARGE / 10
/** Of a million events, with what PostgreSQL needs to remove a tenth of them. */
export const MILLION_EVENTS_BYTES = 3.5e9
const BOUND = 1.3
const ROUNDS = 50
const WARM_UP = 10
/** Ids before the newest one with which a stream comes back. */
const MISSED = 500
const DELIVERIES_PER_S = 2_000
const CONNECTIONS = 12
export const SEARCH_MS = 2_000
/** Load without retention, before and after it. */
const CALM_MS = 10_000
const BODY_BYTES = 2_000
/** Searches answer pages of this site only. */
const BROWSER = { 'Sec-Fetch-Site': 'same-origin' }

/** A log of this many events, and a server for it. */
interface Log {
  readonly events: number
  readonly url: string
  readonly hooks: string
  readonly sender: Sender
  stop(): Promise<void>
}

/** A figure of the smaller log and of the larger one. */
type Pair = readonly [number, number]

/**
 * Ten million events of 2 KB beside one million: pages, a stream that comes back, retention of a
 * tenth of the log under 2,000 deliveries a second, and vacuum. Takes 20 minutes and 35 GB.
 */
export const growth: Part = {
  name: 'growth',
  async run(owner: Owner): Promise<readonly Figure[]> {
    expectFree(((SMALL + LARGE) / 1e6) * MILLION_EVENTS_BYTES)
    const sizes = [SMALL, LARGE]
    const urls = await filledDatabases(owner, sizes.length, async (made) => {
      for (const [at, events] of sizes.entries()) await seedGrowth(made[at] ?? '', events)
    })
    return measureGrowth(owner, ...sizes.map((events, at) => ({ events, url: urls[at] ?? '' })))
  },
}

/** The figures of two seeded logs: pages in turn, then retention and vacuum one log at a time. */
export async function measureGrowth(
  owner: Owner,
  ...seeded: readonly Pick<Log, 'events' | 'url'>[]
): Promise<readonly Figure[]> {
  const logs: Log[] = []
  for (const log of seeded) {
    const sender = createSender()
    const server = await startBenchServer(owner, { DATABASE_URL: log.url, ...sender.env })
    logs.push({ ...log, sender, hooks: server.hooks, stop: server.stop })
  }
  const pages = await measurePages(owner, logs)
  const kept: Retention[] = []
  for (const log of logs) kept.push(await measureRetention(owner, log))
  const emptied = await measurePages(owner, logs, ['quiet type', 'quiet provider', 'dashboard'])
  const vacuumed: number[] = []
  for (const log of logs) {
    await log.stop()
    vacuumed.push(await timed(() => run(log.url, 'vacuum hooks.events')))
  }
  const after = [...emptied].map(([name, pair]): [string, Pair] => [`${name}, removed`, pair])
  return figuresOf([...pages, ...after], kept, vacuumed)
}

/** Medians by name; `only` these pages. */
async function measurePages(
  owner: Owner,
  logs: readonly Log[],
  only?: readonly string[],
): Promise<ReadonlyMap<string, Pair>> {
  const asked = logs.map((log) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    owner.teardown(() => agent.destroy())
    const fetches = Object.entries(logPaths(log.events)).map(
      ([name, path]) => [name, () => fetchPage(`${log.hooks}${path}`, agent, BROWSER)] as const,
    )
    return new Map([...fetches, [STREAM, () => resume(log)] as const])
  })
  const names = only ?? [...(asked[0]?.keys() ?? [])]
  const medians = new Map<string, Pair>()
  for (const name of names) {
    const times = asked.map((): number[] => [])
    const rounds = name === ONE_PAGE ? 3 : ROUNDS
    for (let round = -WARM_UP; round < rounds; round++) {
      for (const [n, fetches] of asked.entries()) {
        const ms = await timed(fetches.get(name) ?? Promise.resolve)
        if (round >= 0) times[n]?.push(ms)
      }
    }
    const [small = [], large = []] = times
    medians.set(name, [median(small), median(large)])
  }
  return medians
}

const STREAM = 'stream back after 500 events'
/** It looks at all that a provider has, and ends its page after a second and a half. */
const ONE_PAGE = 'text in one event, a page'

/** Pages of a log that `seedGrowth` has filled, by name. */
export function logPaths(events: number): Readonly<Record<string, string>> {
  const middle = new Date(Date.now() - (events / 2) * 1_000).toISOString()
  const log = (query: string): string => `/log?limit=50&${query}`
  return {
    'first page': log(''),
    'page half way down': log(`cursor=${cursorAt(events / 2)}`),
    provider: log('provider=code_host'),
    'provider, half way down': log(`provider=code_host&cursor=${cursorAt(events / 2)}`),
    type: log('event_type=type-1'),
    'provider and type': log('provider=code_host&event_type=type-1'),
    'quiet type': log(`event_type=${QUIET_TYPE}`),
    'quiet provider': log(`provider=${QUIET_PROVIDER}`),
    'since a time in the middle': log(`since=${middle}`),
    'since an id': log(`since=${events / 2}`),
    'text in 1 of 200, of a provider': log(`provider=code_host&text=${RARE_TEXT}`),
    [ONE_PAGE]: log(`provider=code_host&text=${ONE_TEXT}`),
    dashboard: '/',
    'an event': `/log/${events / 2}`,
  }
}

/** Opens the stream with an old id, and reads until the newest event has come. */
async function resume({ hooks, events }: Log): Promise<void> {
  const headers = { 'Last-Event-ID': String(events - MISSED) }
  const outgoing = get(`${hooks}/events`, { headers, agent: false })
  const [incoming] = await once(outgoing, 'response')
  let text = ''
  for await (const chunk of incoming.setEncoding('utf8')) {
    text += chunk
    if (text.includes(`"id":${events},`)) break
  }
  outgoing.destroy()
}

interface Retention {
  /** Milliseconds by name. */
  readonly waits: Readonly<Record<string, number>>
  readonly removed: number
  readonly pruneMs: number
  readonly sent: number
  readonly refused: number
  readonly lost: number
}

/** Removes the oldest tenth while deliveries come in. */
async function measureRetention(owner: Owner, log: Log): Promise<Retention> {
  const { url, hooks, events } = log
  const load = startLoad(owner, log)
  await pause(CALM_MS)
  const calm = await load.tell('take')
  const started = performance.now()
  const form = { retention_max_rows: String(events - events / 10) }
  const saved = await postForm(hooks, '/settings', form)
  if (saved.status !== 200) throw new Error(`POST /settings: ${saved.status}, expected 200`)
  const postMs = performance.now() - started
  const { removed, pruneMs } = await retentionEnd(url, started, events / 10)
  const during = await load.tell('take')
  const { sent, refused } = await load.tell('stop')
  const query = `select count(*)::int as n from hooks.events where id > ${events}`
  const [stored] = await run(url, query)
  const waits = {
    'POST /settings': postMs,
    ...waitsOf('deliveries', calm),
    ...waitsOf('deliveries during retention', during),
  }
  const lost = sent - refused - Number(stored?.['n'])
  return { waits, removed, pruneMs, sent, refused, lost }
}

/** Retention is over when nothing was removed for a while. */
export async function retentionEnd(
  url: string,
  started: number,
  least: number,
): Promise<Pick<Retention, 'removed' | 'pruneMs'>> {
  let removed = 0
  let changed = performance.now()
  while (removed < least || performance.now() - changed < 2_000) {
    await pause(100)
    const [row] = await run(url, 'select pruned_through::int as through from hooks.settings')
    const through = Number(row?.['through'])
    if (through === removed) continue
    removed = through
    changed = performance.now()
  }
  return { removed, pruneMs: changed - started }
}

function waitsOf(name: string, { milliseconds }: PacedResult): Record<string, number> {
  return {
    [`${name}, median`]: median(milliseconds),
    [`${name}, p99`]: quantile(milliseconds, 0.99),
  }
}

function startLoad(owner: Owner, { hooks, sender }: Log): PacedLoad {
  return startPacedLoad(owner, {
    port: portOf(hooks),
    connections: CONNECTIONS,
    perSecond: DELIVERIES_PER_S,
    bytes: BODY_BYTES,
    secret: sender.env['HOOKS_CODE_HOST_SECRET'] ?? '',
  })
}

function figuresOf(
  pages: readonly (readonly [string, Pair])[],
  kept: readonly Retention[],
  vacuumed: readonly number[],
): readonly Figure[] {
  const [small, large] = kept
  const [smallVacuum = 0, largeVacuum = 0] = vacuumed
  if (small === undefined || large === undefined) throw new Error('expected two logs')
  const waits = Object.entries(small.waits).map(
    ([name, ms]) => [name, [ms, large.waits[name] ?? Number.NaN]] as const,
  )
  const perRow = ({ pruneMs, removed }: Retention): number => (1_000 * pruneMs) / removed
  const sum = (of: (one: Retention) => number): number => of(small) + of(large)
  return [
    ...[...pages, ...waits].flatMap(([name, pair]) => compared(name, pair, 'ms')),
    { name: 'rows removed', value: small.removed, unit: '' },
    { name: 'rows removed, large log', value: large.removed, unit: '' },
    ...compared('retention, a row', [perRow(small), perRow(large)], 'µs'),
    ...compared(
      'vacuum, a removed row',
      [(1_000 * smallVacuum) / small.removed, (1_000 * largeVacuum) / large.removed],
      'µs',
    ),
    { name: 'deliveries sent', value: sum(({ sent }) => sent), unit: '' },
    atMost(
      'deliveries refused',
      sum(({ refused }) => refused),
      0,
      '',
    ),
    atMost(
      'deliveries acknowledged and lost',
      sum(({ lost }) => lost),
      0,
      '',
    ),
  ]
}

function compared(name: string, [small, large]: Pair, unit: string): Figure[] {
  return [
    { name: `${name}, ${SMALL} events`, value: small, unit },
    { name: `${name}, ${LARGE} events`, value: large, unit },
    name === ONE_PAGE
      ? atMost(`${name}: in all`, large, SEARCH_MS, unit)
      : atMost(`${name}: growth`, large / small, BOUND, '×'),
  ]
}
