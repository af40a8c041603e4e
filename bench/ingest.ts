import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { ROOT } from '../test/helpers/program.ts'
import { startBare } from './helpers/bare.ts'
import { freshDatabase } from './helpers/database.ts'
import { atLeast, median, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { PGBENCH, pgbench } from './helpers/pgbench.ts'
import { portOf, startBenchServer, type BenchServer } from './helpers/server.ts'
import { loadRound, type LoadRound } from './helpers/wrk.ts'

const SECRET = 'a secret of the bench'
const ROUNDS = 5
const SECONDS = 4
const CONNECTIONS = 64
const P99_MS = 25

const BODY = JSON.stringify({ action: 'opened', padding: 'x'.repeat(2_000) })
const SIGNATURE = createHmac('sha256', SECRET).update(BODY).digest('hex')
const HEADERS = {
  Host: '127.0.0.1',
  'Content-Type': 'application/json',
  'X-GitHub-Event': 'pull_request',
  'X-Hub-Signature-256': `sha256=${SIGNATURE}`,
  'Content-Length': String(BODY.length),
}
const REQUEST = {
  connections: CONNECTIONS,
  seconds: SECONDS,
  head: `POST /webhooks/code_host HTTP/1.1\r\n${Object.entries(HEADERS)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}X-GitHub-Delivery: `,
  tail: `\r\n\r\n${BODY}`,
  expect: 'HTTP/1.1 202',
}

/** The same row by pgbench: one insert a transaction, without a word to anybody. */
const INSERT = `
insert into hooks.events (provider, event_type, trust_mode, verified, verify_detail, external_id, content_type,
                          source_ip, headers, payload, body_hash, received_at)
values ('code_host', 'pull_request', 'signed', true, 'hmac-sha256 ok', gen_random_uuid()::text, 'application/json',
        '127.0.0.1', :headers::jsonb, :payload::bytea, sha256(:payload::bytea), now());`

type Peer = 'bare' | 'PostgreSQL' | 'one insert a request' | 'embedded' | 'pgbench'
const PEERS: readonly Peer[] = [
  ...(['bare', 'PostgreSQL', 'one insert a request', 'embedded'] as const),
  ...(PGBENCH === undefined ? [] : (['pgbench'] as const)),
]

/**
 * 2 KB signed code_host bodies at 64 connections in alternating rounds: beside bare node:http that verifies and
 * stores nothing, the same server with one insert a request, and pgbench with the same insert at 64 clients.
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
    const load = (port: number): Promise<LoadRound> => loadRound({ ...REQUEST, port })
    const order = {
      url: urls[0] ?? '',
      clients: CONNECTIONS,
      seconds: SECONDS,
      script: INSERT,
      variables: {
        headers: JSON.stringify(HEADERS),
        payload: `\\x${Buffer.from(BODY).toString('hex')}`,
      },
    }
    const measure: Readonly<Record<Peer, () => Promise<Omit<LoadRound, 'answered'>>>> = {
      bare: () => load(bare.port),
      PostgreSQL: () => load(portOf(grouped.hooks)),
      'one insert a request': () => load(portOf(single.hooks)),
      pgbench: async () => ({ perSecond: await pgbench(owner, order), p99: Number.NaN }),
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
    const p99 = median(latencies.get('PostgreSQL') ?? [])
    return [
      ...PEERS.map((peer) => ({ name: `${peer} (median)`, value: rate(peer), unit: '/s' })),
      atLeast('PostgreSQL / bare', rate('PostgreSQL') / rate('bare'), 0.35),
      atLeast('PostgreSQL / one insert', rate('PostgreSQL') / rate('one insert a request'), 1.4),
      atLeast('PostgreSQL / pgbench', rate('PostgreSQL') / rate('pgbench'), 0.45),
      atLeast('embedded / bare', rate('embedded') / rate('bare'), 0.15),
      {
        name: 'p99 PostgreSQL (median)',
        value: p99,
        unit: 'ms',
        bound: `< ${P99_MS}`,
        kept: p99 < P99_MS,
      },
      { name: 'p99 embedded (median)', value: median(latencies.get('embedded') ?? []), unit: 'ms' },
    ]
  },
}
