import { get } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { apiOf } from '../test/helpers/api.ts'
import { runCli } from '../test/helpers/cli.ts'
import { createSender, type Sender } from '../test/helpers/deliveries.ts'
import { addDestination } from '../test/helpers/destinations.ts'
import { request } from '../test/helpers/http.ts'
import { postForm } from '../test/helpers/hooks.ts'
import { makeLink } from '../test/helpers/links.ts'
import { addEndpoint } from '../test/helpers/mcp.ts'
import { inventoryFile } from '../test/helpers/ops.ts'
import { run } from '../test/helpers/postgres.ts'
import type { Env } from '../test/helpers/program.ts'
import { openDoctor } from '../test/helpers/vitals.ts'
import { startSoak } from '../test/long/soak-load.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { atMost, median, quantile, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startPacedLoad } from './helpers/paced.ts'
import { cpuSeconds, portOf, startBenchServer } from './helpers/server.ts'
import { linksSeed, visitLinks } from './helpers/visits.ts'

const MINUTES = Number(process.env['BENCH_MINUTES'] ?? 60)
const MINUTE_MS = 60_000
/** A tenth of what one host takes (docs/how-far.md). */
const DELIVERIES_PER_S = 1_200
/** About 6,400 a second: an answer takes about 5 ms beside all else. */
const VISITS = { connections: 96, rest: 8 }
const CHECKS = 50
/** Each of them is sent all deliveries. */
const STREAMS = 8
const BODY_BYTES = 2_000
const LINKS = 1_000
/** Events that retention keeps; their table and its indexes are flat from then on. */
const KEPT = 50_000
/** Of the last third of the time by its middle third. */
const BOUND = 1.15

/** How things are at the end of a minute; sizes in MiB. */
type Minute = Readonly<Record<(typeof FLAT)[number] | 'other tables', number>>

const FLAT = [
  'resident memory',
  'heap',
  'open files',
  'handles',
  'table of events',
  'indexes of events',
  'write-ahead log',
  'lines of log, a request',
  'processor, percent',
] as const

/**
 * An hour (`BENCH_MINUTES`) at a tenth of the peak with all three services on PostgreSQL: signed deliveries of 2 KB, a
 * destination and streams that get each of them, redirects, checks, and beside it what users do (test/long/soak-load.ts).
 * Says the curves, and whether they are flat.
 */
export const soak: Part = {
  name: 'soak',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const soaked = await startSoaked(owner)
    const load = await startLoad(owner, soaked)
    const waits: number[] = []
    const minutes = await followMinutes(soaked, async () => {
      waits.push(...(await load.deliveries.tell('take')).milliseconds)
    })
    const visited = await load.visits
    await load.users.stop()
    const { sent, refused } = await load.deliveries.tell('stop')
    const failures = [...load.users.answers].filter(([what]) => / (0|5\d\d)$/.test(what))
    const [owed] = await run(
      soaked.env['DATABASE_URL'],
      `select delivered::float8, died::float8 from hooks.destinations where name = 'soaked'`,
    )
    return [
      ...FLAT.flatMap((name) => curve(name, minutes)),
      ...curve('other tables', minutes).slice(0, 2),
      { name: 'deliveries', value: sent, unit: '' },
      { name: 'deliveries, median', value: median(waits), unit: 'ms' },
      { name: 'deliveries, p99', value: quantile(waits, 0.99), unit: 'ms' },
      { name: 'delivered to the destination', value: Number(owed?.['delivered']), unit: '' },
      { name: 'frames to the streams', value: load.streams.frames(), unit: '' },
      { name: 'redirects', value: visited.answered, unit: '' },
      { name: 'redirects, a second', value: visited.perSecond, unit: '/s' },
      atMost('deliveries refused', refused, 0, ''),
      atMost('dead for the destination', Number(owed?.['died']), 0, ''),
      atMost('streams that ended', load.streams.ended(), 0, ''),
      atMost('failures of ours to users', failures.length, 0, ''),
    ]
  },
}

/** The server, and how to look into it. */
type Soaked = Awaited<ReturnType<typeof startSoaked>>

async function startSoaked(owner: Owner) {
  const sender = createSender()
  const receiver = await startBare(owner, 'bare-receiver.ts', secretOf(sender))
  const doctor = await openDoctor(owner)
  const env = {
    ...sender.env,
    DATABASE_URL: await freshDatabase(owner),
    HOOKS_REPLAY_TARGETS: '127.0.0.1',
    OPS_INVENTORY: await inventoryFile(owner, inventoryOf(receiver.port)),
  }
  let lines = 0
  const variables = { ...env, ...doctor.env }
  const server = await startBenchServer(owner, variables, ['hooks', 'links', 'ops'], (text) => {
    lines += text.split('\n').length - 1
  })
  await addDestination(server.hooks, 'soaked', `http://127.0.0.1:${receiver.port}/`)
  await postForm(server.hooks, '/settings', { retention_max_rows: String(KEPT) })
  return { sender, env, server, doctor, lines: () => lines }
}

function secretOf({ env }: Sender): string {
  return env['HOOKS_CODE_HOST_SECRET'] ?? ''
}

async function startLoad(owner: Owner, { sender, env, server }: Soaked) {
  await run(env['DATABASE_URL'], linksSeed(LINKS))
  const ann = { token: await makeToken(env, 'ann@example.com') }
  await makeLink({ api: apiOf(server.links, ann.token) }, 'kept')
  const endpoint = await addEndpoint(server.hooks, 'soak')
  const users = startSoak(owner, { server, sender, ann, endpoint })
  const streams = readStreams(server.hooks)
  const deliveries = startPacedLoad(owner, {
    port: portOf(server.hooks),
    connections: 12,
    perSecond: DELIVERIES_PER_S,
    bytes: BODY_BYTES,
    secret: secretOf(sender),
  })
  const seconds = (MINUTES * MINUTE_MS) / 1_000
  const port = portOf(server.links)
  const visits = visitLinks({ port, seconds, links: LINKS, steady: VISITS })
  // It is awaited at the end, which throws what went wrong before.
  visits.catch(() => undefined)
  return { users, streams, deliveries, visits }
}

/** Looks at the server at the end of each minute, after `each`. */
async function followMinutes(
  { env, server, doctor, lines }: Soaked,
  each: () => Promise<void>,
): Promise<readonly Minute[]> {
  const readCounts = async () => {
    const requests = await requestsMade(server.hooks)
    return { lines: lines(), requests, cpu: cpuSeconds(server.pid) }
  }
  const minutes: Minute[] = []
  let before = await readCounts()
  const began = performance.now()
  for (let minute = 1; minute <= MINUTES; minute++) {
    await pause(began + minute * MINUTE_MS - performance.now())
    await each()
    const { rss, heap, files, handles } = await doctor.examine(server.pid)
    const now = await readCounts()
    minutes.push({
      'resident memory': rss,
      heap,
      'open files': files,
      handles,
      ...(await sizesOf(env['DATABASE_URL'])),
      'lines of log, a request': (now.lines - before.lines) / (now.requests - before.requests),
      'processor, percent': ((now.cpu - before.cpu) * 100_000) / MINUTE_MS,
    })
    before = now
    console.log(`  ${minute}: ${JSON.stringify(minutes.at(-1))}`)
  }
  return minutes
}

function inventoryOf(port: number): object {
  const checks = Array.from({ length: CHECKS }, (_, at) => {
    return { type: 'tcp', name: `port ${at}`, host: '127.0.0.1', port }
  })
  return { services: [{ name: 'receiver', checks }] }
}

/** A user of links, and a token of theirs. */
async function makeToken(env: Env, email: string): Promise<string> {
  await runCli(['user', 'add', email], { env })
  const { stdout } = await runCli(['token', 'create', email, '--scope', 'full'], { env })
  return stdout.trim().split('\n').at(-1) ?? ''
}

async function sizesOf(url: string) {
  const [row] = await run(
    url,
    `select pg_table_size('hooks.events')::float8 as events, pg_indexes_size('hooks.events')::float8 as indexes,
            (select sum(size) from pg_ls_waldir())::float8 as wal,
            (select sum(pg_total_relation_size(oid)) from pg_class
              where relkind = 'r' and relnamespace in ('hooks'::regnamespace, 'links'::regnamespace, 'ops'::regnamespace,
                'notices'::regnamespace, 'audit'::regnamespace) and oid <> 'hooks.events'::regclass)::float8 as others`,
  )
  const mebibytes = (name: string): number => Number(row?.[name]) / 2 ** 20
  return {
    'table of events': mebibytes('events'),
    'indexes of events': mebibytes('indexes'),
    'write-ahead log': mebibytes('wal'),
    'other tables': mebibytes('others'),
  }
}

/** How many requests all services have answered. */
async function requestsMade(base: string): Promise<number> {
  const { text } = await request(`${base}/metrics`)
  const counts = [...text.matchAll(/^gatehouse_http_requests_total\{.*\} (\d+)$/gm)]
  return counts.reduce((sum, [, count]) => sum + Number(count), 0)
}

/** The medians of the middle and the last third, and the one by the other. */
function curve(name: keyof Minute, minutes: readonly Minute[]): Figure[] {
  const values = minutes.map((minute) => minute[name])
  const third = Math.floor(values.length / 3)
  const [middle, last] = [median(values.slice(third, -third)), median(values.slice(-third))]
  return [
    { name: `${name}, middle third`, value: middle, unit: '' },
    { name: `${name}, last third`, value: last, unit: '' },
    atMost(`${name}: growth`, last / middle, BOUND, '×'),
  ]
}

/** Streams that are open all the time. */
function readStreams(base: string): { frames(): number; ended(): number } {
  let [frames, ended] = [0, 0]
  for (let n = 0; n < STREAMS; n++) {
    let begun = ''
    get(`${base}/events`, { agent: false }, (incoming) => {
      incoming.setEncoding('latin1').on('data', (text: string) => {
        const parts = (begun + text).split('\n\n')
        begun = parts.pop() ?? ''
        frames += parts.filter((part) => part.startsWith('id: ')).length
      })
      incoming.on('close', () => ended++)
    })
  }
  return { frames: () => frames, ended: () => ended }
}
