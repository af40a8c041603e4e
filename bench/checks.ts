import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { keepAlive } from '../test/helpers/deliveries.ts'
import { backends, type Backend } from '../test/helpers/backends.ts'
import { inventoryFile } from '../test/helpers/ops.ts'
import { run } from '../test/helpers/postgres.ts'
import { startBare } from './helpers/bare.ts'
import { migratedDatabase } from './helpers/database.ts'
import { fetchPage } from './helpers/fetch-page.ts'
import { latenessSince } from './helpers/lateness.ts'
import {
  atMost,
  median,
  quantile,
  timed,
  type Figure,
  type Owner,
  type Part,
} from './helpers/measure.ts'
import { cpuSeconds, residentBytes, startBenchServer } from './helpers/server.ts'

/** Checks that look once a minute. */
const CHECKS = 500
/** The first looks, which come together, are not measured. */
const SETTLE_MS = 75_000
const MEASURE_MS = 60_000
const MAX_PERCENT = 3
const MAX_MIB = 20

/** Checks that look every ten seconds; those that hang get no answer until their time-out, as in a storm. */
const FREQUENT = { every_s: 10, healthy: 850, hanging: 150 }
const FREQUENT_PERCENT = 40
const LAG_S = 1
/** Of results, in a week: the last 500 of each check are kept. */
const RESULTS_MIB = 100

const LISTED = 1_000
const PAGE_MS = 20
const ROUNDS = 100

/** What checks cost, how late they are in a storm, and pages of 1,000 checks with a year of history. */
export const checks: Part = {
  name: 'checks',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const figures: Figure[] = []
    for (const backend of backends) figures.push(...(await costOfRounds(owner, backend)))
    return [...figures, ...(await stormOfChecks(owner)), ...(await pagesOfYear(owner))]
  },
}

/** The processor time and memory of 500 checks, less those of none, in the same time. */
async function costOfRounds(owner: Owner, backend: Backend): Promise<readonly Figure[]> {
  const { port } = await startBare(owner, 'bare-answer.ts', 'ok')
  const check = (at: number) =>
    at % 2 === 0
      ? { type: 'http', name: `page ${at}`, url: `http://127.0.0.1:${port}/${at}` }
      : { type: 'tcp', name: `port ${at}`, host: '127.0.0.1', port }
  const all = Array.from({ length: CHECKS }, (_, at) => check(at))
  const services = Array.from({ length: CHECKS / 50 }, (_, at) => {
    return { name: `service ${at}`, checks: all.slice(at * 50, at * 50 + 50) }
  })
  const [none, some] = await Promise.all([
    measure(owner, backend, { services: [] }),
    measure(owner, backend, { services }),
  ])
  const name = `${backend.name}, ${CHECKS} checks a minute`
  const seconds = MEASURE_MS / 1_000
  const percent = ((some.cpu - none.cpu) / seconds) * 100
  const mebibytes = (some.bytes - none.bytes) / 2 ** 20
  return [
    atMost(`${name}: of a core`, percent, MAX_PERCENT, '%'),
    atMost(`${name}: resident memory`, mebibytes, MAX_MIB, 'MiB'),
  ]
}

async function measure(owner: Owner, backend: Backend, inventory: object) {
  const env = {
    ...(await backend.env(owner)),
    OPS_INVENTORY: await inventoryFile(owner, inventory),
  }
  const server = await startBenchServer(owner, env, ['ops'])
  await pause(SETTLE_MS)
  const before = cpuSeconds(server.pid)
  await pause(MEASURE_MS)
  const figures = { cpu: cpuSeconds(server.pid) - before, bytes: residentBytes(server.pid) }
  await server.stop()
  return figures
}

/** How late the healthy of 1,000 checks of ten seconds are while the others hang, and what all cost. */
async function stormOfChecks(owner: Owner): Promise<readonly Figure[]> {
  const { port } = await startBare(owner, 'bare-answer.ts', 'ok')
  const silent = createServer((socket) => socket.on('error', () => undefined))
  silent.listen(0, '127.0.0.1')
  await once(silent, 'listening')
  owner.teardown(() => void silent.close())
  const address = silent.address() as AddressInfo
  const { every_s, healthy, hanging } = FREQUENT
  const every = `${every_s}s`
  const checksOf = (name: string, count: number, to: number, more: object) =>
    Array.from({ length: count }, (_, at) => {
      const check = { type: 'tcp', host: '127.0.0.1', port: to, every, retries: 0 }
      return { ...check, name: `${name} ${at}`, ...more }
    })
  const all = checksOf('healthy', healthy, port, {})
  const services = Array.from({ length: healthy / 50 }, (_, at) => {
    return { name: `healthy ${at}`, checks: all.slice(at * 50, at * 50 + 50) }
  })
  const stuck = checksOf('hanging', hanging, address.port, { contains: 'hello', timeout_s: 10 })
  services.push({ name: 'hanging', checks: stuck })
  const DATABASE_URL = await migratedDatabase(owner)
  const OPS_INVENTORY = await inventoryFile(owner, { services })
  const server = await startBenchServer(owner, { DATABASE_URL, OPS_INVENTORY }, ['ops'])
  await pause(SETTLE_MS)
  const before = cpuSeconds(server.pid)
  const began = new Date()
  await pause(MEASURE_MS)
  const percent = ((cpuSeconds(server.pid) - before) / (MEASURE_MS / 1_000)) * 100
  const late = await latenessSince(DATABASE_URL, began, 'hanging')
  const kept = FREQUENT.healthy + FREQUENT.hanging
  const [size] = await run(
    DATABASE_URL,
    `select pg_total_relation_size('ops.check_results') / greatest(count(*), 1) * 500 * ${kept} / 1048576 as mebibytes
       from ops.check_results`,
  )
  const name = `${kept} checks of ${every_s} s, ${hanging} of which hang`
  return [
    atMost(`${name}: a healthy one is late, at most`, late.most, LAG_S, 's'),
    { name: `${name}: p99`, value: late.p99, unit: 's' },
    { name: `${name}: healthy runs in a minute`, value: late.runs, unit: 'runs' },
    atMost(`${name}: of a core`, percent, FREQUENT_PERCENT, '%'),
    atMost(`${name}: results that are kept`, Number(size?.['mebibytes']), RESULTS_MIB, 'MiB'),
  ]
}

/** Checks of 100 services with results of a year, as `hours` and days that were kept. */
const YEAR = `
insert into ops.checks (service, name, type, every_s, version, next_at, since, state, message, checked_at)
select 'service ' || n % 100, 'check ' || n, 'load', 60, '', now() + interval '1 min', now(), 'ok', 'load of 1', now()
  from generate_series(1, ${LISTED}) n;
insert into ops.check_counts
select c.id, 'hour', date_trunc('hour', now()) - n * interval '1 hour', 60, n % 7, 0, 0, 1, 600, 90
  from ops.checks c, generate_series(0, 2399) n;
insert into ops.check_counts
select c.id, 'day', date_trunc('day', now(), 'UTC') - n * interval '1 day', 1440, n % 7, 0, 0, 1, 14400, 90
  from ops.checks c, generate_series(0, 365) n;
insert into ops.check_periods (check_id, state, began_at, ended_at, message)
select c.id, case n % 2 when 0 then 'ok' else 'fail' end, now() - (n + 1) * interval '1 day',
       case when n > 0 then now() - n * interval '1 day' end, 'load of 1'
  from ops.checks c, generate_series(0, 365) n`

async function pagesOfYear(owner: Owner): Promise<readonly Figure[]> {
  const url = await migratedDatabase(owner)
  const check = { type: 'load', max_per_cpu: 1_000, every: '24h' }
  const services = Array.from({ length: 100 }, (_, service) => {
    const own = Array.from({ length: LISTED }, (_, at) => at + 1).filter(
      (n) => n % 100 === service,
    )
    return {
      name: `service ${service}`,
      checks: own.map((n) => ({ ...check, name: `check ${n}` })),
    }
  })
  const named = services.slice(0, 10).map(({ name }) => name)
  const env = {
    DATABASE_URL: url,
    OPS_INVENTORY: await inventoryFile(owner, { services }),
    OPS_STATUS_SERVICES: named.join(','),
  }
  await run(url, YEAR)
  await run(url, 'vacuum analyze')
  const server = await startBenchServer(owner, env, ['ops'])
  const agent = keepAlive(owner, 1)
  const figures: Figure[] = []
  for (const path of ['/', '/checks', '/checks/500', '/checks?service=service 7', '/status']) {
    const times: number[] = []
    for (let round = -5; round < ROUNDS; round++) {
      const ms = await timed(() => fetchPage(`${server.ops}${encodeURI(path)}`, agent, {}))
      if (round >= 0) times.push(ms)
    }
    const name = `${LISTED} checks with a year: ${path}`
    figures.push(atMost(`${name} (median)`, median(times), PAGE_MS, 'ms'))
    figures.push({ name: `${name} (p99)`, value: quantile(times, 0.99), unit: 'ms' })
  }
  return figures
}
