import { keepAlive } from '../test/helpers/deliveries.ts'
import { inventoryFile } from '../test/helpers/ops.ts'
import { run } from '../test/helpers/postgres.ts'
import type { Env } from '../test/helpers/program.ts'
import type { Service } from '../test/helpers/server.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { BIG_OWNER, POPULAR, seedLinks } from './helpers/link-seed.ts'
import { BUSY_DESTINATION, seedLog } from './helpers/log-seed.ts'
import { atMost, median, timed, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { LONG_SESSION, seededInventory, seedOps } from './helpers/ops-seed.ts'
import { cpuSeconds, startBenchServer, type BenchServer } from './helpers/server.ts'

const ROWS = Number(process.env['BENCH_ROWS'] ?? 1_000_000)
const ROUNDS = 100
const WARM_UP = 6
/** A slow page is asked fewer times. */
const PAGE_MS = 2_000
const LEAST_ROUNDS = 10
export const MEDIAN_MS = 20

/** The user with a tenth of all links, as a proxy names them. */
export const PROXY = { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8' }
const BROWSER = { 'Remote-Email': BIG_OWNER, 'Sec-Fetch-Site': 'same-origin' }

/**
 * The pages of each service that list or count rows, with `rows` of each kind. A search that reads payloads for what is
 * rare has 1.5 s instead.
 */
export const pathsOf = (rows: number): Readonly<Record<Service, readonly string[]>> => ({
  hooks: [
    '/',
    '/log',
    '/log?provider=payments',
    '/log?event_type=push',
    '/log?event_type=type.*',
    '/log?event_type=refund.failed',
    '/log?provider=generic:shop&event_type=type.5',
    '/log?since=24h',
    '/log?since=7d&until=2d',
    '/log?when=yesterday',
    '/log?verified=true',
    '/log?text=Globex',
    '/log?rejected=1',
    `/log?open=${rows - 1_000}`,
    `/log/${rows / 2}`,
    '/providers',
    '/destinations',
    `/destinations/${BUSY_DESTINATION}`,
    `/destinations/${BUSY_DESTINATION}?state=dead`,
    '/destinations/-/matches?event_type=type.*',
    '/destinations/-/matches?json=customer.name=Globex%207',
    '/replays/new',
    '/settings',
    '/palette?q=refund',
  ],
  links: [
    '/-/',
    '/-/?sort=clicks',
    '/-/all',
    '/-/all?sort=clicks',
    '/-/all?sort=changed',
    `/-/all?q=%23${POPULAR}`,
    '/-/all?q=a1b2',
    '/-/tags',
    `/-/tags/${POPULAR}`,
    '/-/admin/links',
    '/-/admin/users',
    '/a1b2c3',
  ],
  ops: [
    '/',
    '/waiting',
    '/sessions',
    '/sessions?when=night',
    '/sessions?when=week',
    `/sessions?when=days&from=${dayAgo(300)}&to=${dayAgo(240)}`,
    '/sessions?status=failed',
    '/sessions?trigger=alert&when=week',
    `/sessions/${LONG_SESSION}`,
    `/sessions/${rows - 4}`,
    '/events',
    '/events?level=critical',
    '/events?service=service%207&level=warning',
    '/events?service=none',
    '/alerts',
    '/alerts?state=firing',
    '/alerts?service=service%207',
    '/alerts?state=firing&service=service%207',
    '/alerts/1',
    '/memories',
    '/cooldowns',
    '/approvals',
    '/notices',
    '/checks',
    '/checks/500',
    '/checks?service=service%207',
    '/status',
    '/audit',
    '/palette?q=service',
  ],
})

/** The pages of a service, one request at a time, with a million rows of each kind. */
function pagesOf(
  service: Service,
  seed: (url: string) => Promise<void>,
  envOf: (owner: Owner) => Promise<Env>,
): Part {
  return {
    name: `${service}-pages`,
    async run(owner) {
      const url = await migratedDatabase(owner)
      await seed(url)
      const env = { DATABASE_URL: url, ...PROXY, ...(await envOf(owner)) }
      const server = await startBenchServer(owner, env, [service])
      const figures: Figure[] = []
      for (const path of pathsOf(ROWS)[service]) {
        const { times, cpuMs } = await measurePage(owner, { url, ...server }, service, path)
        figures.push(
          atMost(`${path}: median`, median(times), MEDIAN_MS, 'ms'),
          { name: `${path}: fastest`, value: Math.min(...times), unit: 'ms' },
          { name: `${path}: processor`, value: cpuMs, unit: 'ms' },
        )
      }
      return figures
    },
  }
}

/** How long a page takes the user with many links, and the time of the processor for it. */
export async function measurePage(
  owner: Owner,
  server: BenchServer & { readonly url: string },
  service: Service,
  path: string,
) {
  const agent = keepAlive(owner, 1)
  const work = () => fetchPage(`${server[service]}${path}`, agent, BROWSER)
  return measure(work, () => processorSeconds(server.url, server.pid))
}

/** How long a page takes, and the time of the processor for it, which others change less. */
async function measure(ask: () => Promise<void>, spent: () => Promise<number>) {
  for (let round = 0; round < WARM_UP; round++) await ask()
  const times: number[] = []
  const before = await spent()
  const started = performance.now()
  while (times.length < ROUNDS) {
    if (times.length >= LEAST_ROUNDS && performance.now() - started > PAGE_MS) break
    times.push(await timed(ask))
  }
  return { times, cpuMs: (((await spent()) - before) / times.length) * 1_000 }
}

/** Of the server and of its connections to PostgreSQL. */
export async function processorSeconds(url: string, server: number): Promise<number> {
  const backends = await run(
    url,
    `select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
  )
  const pids = [server, ...backends.map(({ pid }) => Number(pid))]
  return pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
}

/** The user who asks for the pages sees all links. */
export async function makeAdmin(url: string): Promise<void> {
  await run(url, `update links.users set role = 'admin' where email = '${BIG_OWNER}'`)
  await run(url, 'vacuum analyze')
}

function dayAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
}

export const hooksPages = pagesOf(
  'hooks',
  (url) => seedLog(url, ROWS),
  async () => ({}),
)

export const linksPages = pagesOf(
  'links',
  async (url) => {
    await seedLinks(url, ROWS)
    await makeAdmin(url)
  },
  async () => ({}),
)

export const opsPages = pagesOf(
  'ops',
  (url) => seedOps(url, ROWS),
  async (owner) => ({
    OPS_INVENTORY: await inventoryFile(owner, seededInventory()),
    OPS_RETENTION_DAYS: '0',
    OPS_LINES_RETENTION_DAYS: '0',
    OPS_STATUS_SERVICES: 'service 1,service 2',
  }),
)
