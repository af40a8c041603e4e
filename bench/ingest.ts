import { createHmac, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { run } from '../test/helpers/postgres.ts'
import { ROOT } from '../test/helpers/program.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import type { RequestText } from './helpers/load-worker.ts'
import {
  atLeast,
  atMost,
  median,
  quantile,
  type Figure,
  type Owner,
  type Part,
} from './helpers/measure.ts'
import { startPacedLoad } from './helpers/paced.ts'
import { PGBENCH, pgbench } from './helpers/pgbench.ts'
import { portOf, startBenchServer, type BenchServer } from './helpers/server.ts'
import { loadRound, type LoadRound } from './helpers/wrk.ts'

/** `HOOKS_CODE_HOST_SECRET` of a server that takes the deliveries. */
export const SECRET = 'a secret of the bench'
const ROUNDS = 5
const SECONDS = 4
const CONNECTIONS = 64
/** Deliveries a second that come at a steady rate, whatever the server does. */
const PACES = [1_000, 2_500, 5_000]
const PACED_CONNECTIONS = 256
const P99_MS = 25
/** Bytes of the log beyond what is stored, and bytes of indexes, for each event. */
const MAX_LOG = 700
const MAX_INDEXES = 150
/** With fewer, pages that are not full yet count too much. */
const LEAST_EVENTS = 50_000

const BODIES = 600
const WORDS = [
  '"quoted"',
  'ünïcödé',
  'back\\slash',
  '日本語',
  '😀',
  'plain text',
  "it's",
  '\ttab',
  '<p>',
]

/** A body of 2 KB that hardly compresses, with quotes and with letters beyond ASCII. */
function makeBody(n: number): string {
  const commits: unknown[] = []
  while (Buffer.byteLength(JSON.stringify(commits)) < 1_950) {
    const message = `${WORDS[(n + commits.length) % WORDS.length]} ${randomBytes(30).toString('base64')}`
    commits.push({ id: randomBytes(20).toString('hex'), message })
  }
  return JSON.stringify({ action: 'opened', n, commits })
}

export function makeBodies(): readonly string[] {
  return Array.from({ length: BODIES }, (_, n) => makeBody(n))
}

/** A round of signed deliveries of these bodies to a port. */
export function deliveryLoad(bodies: readonly string[]): (port: number) => Promise<LoadRound> {
  const order = {
    connections: CONNECTIONS,
    seconds: SECONDS,
    requests: bodies.map(requestOf),
    expect: 'HTTP/1.1 202',
  }
  return (port) => loadRound({ ...order, port })
}

function headersOf(body: string): Readonly<Record<string, string>> {
  return {
    Host: '127.0.0.1',
    'Content-Type': 'application/json',
    'X-GitHub-Event': 'pull_request',
    'X-Hub-Signature-256': `sha256=${createHmac('sha256', SECRET).update(body).digest('hex')}`,
    'Content-Length': String(Buffer.byteLength(body)),
  }
}

function requestOf(body: string): RequestText {
  const lines = Object.entries(headersOf(body)).map(([name, value]) => `${name}: ${value}\r\n`)
  return {
    head: `POST /webhooks/code_host HTTP/1.1\r\n${lines.join('')}X-GitHub-Delivery: `,
    tail: `\r\n\r\n${body}`,
  }
}

/** The same row by pgbench: one insert a transaction, without a word to anybody. */
const INSERT = `
insert into hooks.events (received_at, body_check, trust, provider, event_type, external_id, method, path,
                          content_type, source_ip, headers, payload)
values (now(), (random() * 1e9)::integer, 1, 'code_host', 'pull_request', gen_random_uuid()::text, 'POST',
        '/webhooks/code_host', 'application/json', '127.0.0.1', :headers, :payload::bytea);`

type Peer = 'bare' | 'PostgreSQL' | 'one insert a request' | 'embedded' | 'pgbench'
const PEERS: readonly Peer[] = [
  ...(['bare', 'PostgreSQL', 'one insert a request', 'embedded'] as const),
  ...(PGBENCH === undefined ? [] : (['pgbench'] as const)),
]

/**
 * Signed code_host bodies of 2 KB, another one in each request, at 64 connections in alternating rounds: beside bare
 * node:http that verifies and stores nothing, the same server with one insert a request, and pgbench with the same
 * insert at 64 clients. Then at steady rates, and what an event takes of PostgreSQL's log and of its indexes.
 */
export const ingest: Part = {
  name: 'ingest',
  async run(owner: Owner): Promise<readonly Figure[]> {
    async function onServer(env: Readonly<Record<string, string>> = {}): Promise<BenchServer> {
      const url = await freshDatabase(owner)
      urls.push(url)
      return startBenchServer(owner, { HOOKS_CODE_HOST_SECRET: SECRET, DATABASE_URL: url, ...env })
    }
    const urls: string[] = []
    const grouped = await onServer()
    const preload = join(ROOT, 'bench', 'helpers', 'one-insert.ts')
    const single = await onServer({ NODE_OPTIONS: `--import=${preload}` })
    const embedded = await startBenchServer(owner, {
      HOOKS_CODE_HOST_SECRET: SECRET,
      GATEHOUSE_DATA_DIR: await temporaryFolder(owner),
    })
    const bare = await startBare(owner, 'bare-receiver.ts', SECRET)
    const bodies = makeBodies()
    const load = deliveryLoad(bodies)
    const [body = ''] = bodies
    const inserts = {
      url: urls[0] ?? '',
      clients: CONNECTIONS,
      seconds: SECONDS,
      script: INSERT,
      variables: {
        headers: JSON.stringify(Object.entries(headersOf(body))),
        payload: `\\x${Buffer.from(body).toString('hex')}`,
      },
    }
    const measure: Readonly<Record<Peer, () => Promise<Omit<LoadRound, 'answered'>>>> = {
      bare: () => load(bare.port),
      PostgreSQL: () => load(portOf(grouped.hooks)),
      'one insert a request': () => load(portOf(single.hooks)),
      pgbench: async () => ({ perSecond: await pgbench(owner, inserts), p99: Number.NaN }),
      embedded: () => load(portOf(embedded.hooks)),
    }
    const rates = new Map<Peer, number[]>(PEERS.map((peer) => [peer, []]))
    const latencies = new Map<Peer, number[]>(PEERS.map((peer) => [peer, []]))
    for (let round = -1; round < ROUNDS; round++) {
      for (const peer of PEERS) {
        const { perSecond, p99 } = await measure[peer]()
        // The first round lets the code become fast: it is made, not measured.
        if (round < 0) continue
        rates.get(peer)?.push(perSecond)
        latencies.get(peer)?.push(p99)
      }
    }
    const rate = (peer: Peer): number => median(rates.get(peer) ?? [])
    const paced: Figure[] = []
    for (const perSecond of PACES) {
      const ms = await pacedP99(owner, portOf(grouped.hooks), perSecond)
      const name = `p99 PostgreSQL at ${perSecond}/s`
      paced.push(atMost(name, ms, P99_MS, 'ms'))
    }
    const size = await sizeOfEvents(urls[0] ?? '', () => load(portOf(grouped.hooks)))
    return [
      ...PEERS.map((peer) => ({ name: `${peer} (median)`, value: rate(peer), unit: '/s' })),
      atLeast('PostgreSQL / bare', rate('PostgreSQL') / rate('bare'), 0.4),
      atLeast('PostgreSQL / one insert', rate('PostgreSQL') / rate('one insert a request'), 1.4),
      atLeast('PostgreSQL / pgbench', rate('PostgreSQL') / rate('pgbench'), 1.2),
      atLeast('embedded / bare', rate('embedded') / rate('bare'), 0.25),
      ...paced,
      ...(['PostgreSQL', 'embedded'] as const).map((peer) => ({
        name: `p99 ${peer} at its most (median)`,
        value: median(latencies.get(peer) ?? []),
        unit: 'ms',
      })),
      { name: 'stored bytes an event', value: size.stored, unit: 'bytes' },
      atMost('log beyond these, an event', size.log - size.stored, MAX_LOG, 'bytes'),
      atMost('indexes, an event', size.indexes, MAX_INDEXES, 'bytes'),
    ]
  },
}

/** The p99 of the time from when a delivery is due until its answer, at a steady rate. */
async function pacedP99(owner: Owner, port: number, perSecond: number): Promise<number> {
  const order = { port, connections: PACED_CONNECTIONS, perSecond, bytes: 2_000, secret: SECRET }
  const load = startPacedLoad(owner, order)
  await pause(SECONDS * 1_000)
  await load.tell('take')
  await pause(SECONDS * 1_000)
  const { milliseconds, refused } = await load.tell('take')
  await load.tell('stop')
  if (refused > 0) throw new Error(`${refused} deliveries at ${perSecond}/s were refused`)
  return quantile(milliseconds, 0.99)
}

/** Bytes that each event of a load takes: in the table, in its indexes, and in PostgreSQL's log. */
async function sizeOfEvents(
  url: string,
  load: () => Promise<LoadRound>,
): Promise<{ readonly stored: number; readonly indexes: number; readonly log: number }> {
  await run(url, 'truncate hooks.events cascade')
  await run(url, 'checkpoint')
  const [before] = await run(url, 'select pg_current_wal_lsn()::text as lsn')
  let events = 0
  while (events < LEAST_EVENTS) events += (await load()).answered
  const [row] = await run(
    url,
    `select pg_wal_lsn_diff(pg_current_wal_lsn(), '${String(before?.['lsn'])}')::float8 as log,
            pg_table_size('hooks.events')::float8 as stored, pg_indexes_size('hooks.events')::float8 as indexes,
            (select count(*) from hooks.events)::float8 as events`,
  )
  const of = (name: string): number => Number(row?.[name]) / Number(row?.['events'])
  return { stored: of('stored'), indexes: of('indexes'), log: of('log') }
}
