import { setTimeout as pause } from 'node:timers/promises'
import { postForm } from '../test/helpers/hooks.ts'
import { inventoryFile } from '../test/helpers/ops.ts'
import { run } from '../test/helpers/postgres.ts'
import { SERVICES, type Service } from '../test/helpers/server.ts'
import { logPaths, MILLION_EVENTS_BYTES, retentionEnd, SEARCH_MS } from './growth.ts'
import { startBare } from './helpers/bare.ts'
import { expectFree, filledDatabases } from './helpers/database.ts'
import { seedGrowth } from './helpers/growth-seed.ts'
import { latenessSince } from './helpers/lateness.ts'
import { seedLinks } from './helpers/link-seed.ts'
import { atMost, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { seedOps, seededInventory } from './helpers/ops-seed.ts'
import { cpuSeconds, startBenchServer, type BenchServer } from './helpers/server.ts'
import { ownMib } from './memory.ts'
import { makeAdmin, measurePage, MEDIAN_MS, pathsOf, processorSeconds, PROXY } from './pages.ts'

const EVENTS = Number(process.env['BENCH_EVENTS'] ?? 10_000_000)
const LINKS = EVENTS / 10
/** Alerts, and sessions, events and notices of ops. */
const ALERTS = EVENTS / 100
const MILLION_LINKS_BYTES = 5e9
const EVERY_S = 10
/** The first looks, which come together, are not measured. */
const SETTLE_MS = 75_000
const MEASURE_MS = 60_000
const LAG_S = 1

/** A server with its database. */
type Installation = BenchServer & { readonly url: string }

/**
 * One installation with ten million events (`BENCH_EVENTS`, at least 100,000), a tenth of that in links, a hundredth in
 * alerts, and 1,000 checks of ten seconds that run meanwhile: how late these are, what they cost, pages of all services,
 * retention of a tenth of the log, and memory.
 */
export const large: Part = {
  name: 'large',
  async run(owner: Owner): Promise<readonly Figure[]> {
    expectFree((EVENTS / 1e6) * MILLION_EVENTS_BYTES + (LINKS / 1e6) * MILLION_LINKS_BYTES)
    const [url = ''] = await filledDatabases(owner, 1, async ([made = '']) => {
      await seedGrowth(made, EVENTS)
      await seedLinks(made, LINKS)
      await seedOps(made, ALERTS)
      await makeAdmin(made)
    })
    const server = { url, ...(await startInstallation(owner, url)) }
    await pause(SETTLE_MS)
    const rested = ownMib(server.pid)
    const resting = await measureChecks(server, 'at rest', () => pause(MEASURE_MS))
    const pages: Figure[] = []
    const reading = await measureChecks(server, 'while pages are read', async () => {
      pages.push(...(await measurePages(owner, server)))
    })
    const removing: Figure[] = []
    const kept = await measureChecks(server, 'during retention', async () => {
      removing.push(await measureRetention(server))
    })
    return [
      { name: 'start until ready', value: server.readyMs, unit: 'ms' },
      await databaseSize(url),
      { name: 'own memory after the start', value: rested, unit: 'MiB' },
      ...resting,
      ...pages,
      ...reading,
      ...removing,
      ...kept,
      { name: 'own memory at the end', value: ownMib(server.pid), unit: 'MiB' },
    ]
  },
}

async function startInstallation(owner: Owner, url: string): Promise<BenchServer> {
  const { port } = await startBare(owner, 'bare-answer.ts', 'ok')
  const look = { type: 'tcp', host: '127.0.0.1', port, every: `${EVERY_S}s` }
  const services = seededInventory().services.map(({ name, checks }) => ({
    name,
    checks: checks.map((check) => ({ ...look, name: check.name })),
  }))
  const env = {
    DATABASE_URL: url,
    ...PROXY,
    OPS_INVENTORY: await inventoryFile(owner, { services }),
    OPS_RETENTION_DAYS: '0',
    OPS_LINES_RETENTION_DAYS: '0',
    OPS_STATUS_SERVICES: 'service 1,service 2',
  }
  return startBenchServer(owner, env, SERVICES)
}

/** How late the checks are, and what the processor does, while something else is done. */
async function measureChecks(
  server: Installation,
  when: string,
  work: () => Promise<unknown>,
): Promise<readonly Figure[]> {
  const spent = async () => ({
    own: cpuSeconds(server.pid),
    all: await processorSeconds(server.url, server.pid),
    at: performance.now(),
  })
  const began = new Date()
  const before = await spent()
  await work()
  const after = await spent()
  const seconds = (after.at - before.at) / 1_000
  const { most, p99, runs } = await latenessSince(server.url, began)
  const percent = (name: 'own' | 'all') => ((after[name] - before[name]) / seconds) * 100
  return [
    atMost(`checks, ${when}: late, at most`, most, LAG_S, 's'),
    { name: `checks, ${when}: late, p99`, value: p99, unit: 's' },
    { name: `checks, ${when}: runs a second`, value: runs / seconds, unit: '/s' },
    { name: `server, ${when}: of a core`, value: percent('own'), unit: '%' },
    { name: `server and PostgreSQL, ${when}: of a core`, value: percent('all'), unit: '%' },
  ]
}

/** Medians of the pages of all services. */
async function measurePages(owner: Owner, server: Installation): Promise<readonly Figure[]> {
  const paths = pathsOf(ALERTS)
  const wanted = [
    ...Object.entries(logPaths(EVENTS)).map(([name, path]) => ['hooks', name, path] as const),
    ...paths.links.map((path) => ['links', path, path] as const),
    ...paths.ops.map((path) => ['ops', path, path] as const),
  ]
  const figures: Figure[] = []
  for (const [service, name, path] of wanted) {
    const most = name.startsWith('text') ? SEARCH_MS : MEDIAN_MS
    const ms = await medianOf(owner, server, service, path)
    figures.push(atMost(`${service}, ${name}`, ms, most, 'ms'))
  }
  return figures
}

/** Not a number where the page fails: the other figures are still worth their hour. */
async function medianOf(owner: Owner, server: Installation, service: Service, path: string) {
  try {
    return median((await measurePage(owner, server, service, path)).times)
  } catch (error) {
    console.log(`  ${service}${path}: ${error instanceof Error ? error.message : String(error)}`)
    return Number.NaN
  }
}

/** Removes the oldest tenth of the log. */
async function measureRetention({ url, hooks }: Installation): Promise<Figure> {
  const started = performance.now()
  const most = String(EVENTS - EVENTS / 10)
  const saved = await postForm(hooks, '/settings', { retention_max_rows: most })
  if (saved.status !== 200) throw new Error(`POST /settings: ${saved.status}, expected 200`)
  const { removed, pruneMs } = await retentionEnd(url, started, EVENTS / 10)
  return { name: 'retention, a row', value: (pruneMs * 1_000) / removed, unit: 'µs' }
}

async function databaseSize(url: string): Promise<Figure> {
  const [row] = await run(url, 'select pg_database_size(current_database())::float8 as bytes')
  return { name: 'size of the database', value: Number(row?.['bytes']) / 2 ** 30, unit: 'GiB' }
}
