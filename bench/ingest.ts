import { spawn } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { temporaryFolder } from '../test/helpers/owner.ts'
import { sharedPostgres } from '../test/helpers/postgres.ts'
import { ROOT } from '../test/helpers/program.ts'
import { runLoad } from './helpers/load.ts'
import { median, quantile, type Figure, type Owner, type Part } from './helpers/measure.ts'
import { startBenchServer } from './helpers/server.ts'

const SECRET = 'a secret of the bench'
const ROUNDS = 5
const SECONDS = 4
const CONNECTIONS = 64

/** 2 KB signed code_host bodies at 64 connections, beside bare node:http in alternating rounds. */
export const ingest: Part = {
  name: 'ingest',
  async run(owner: Owner): Promise<readonly Figure[]> {
    const databases = await sharedPostgres()
    const url = await databases.createDatabase()
    owner.teardown(() => databases.dropDatabase(url))
    const env = { HOOKS_CODE_HOST_SECRET: SECRET }
    const server = await startBenchServer(owner, { ...env, DATABASE_URL: url })
    const embedded = await startBenchServer(owner, {
      ...env,
      GATEHOUSE_DATA_DIR: await temporaryFolder(owner),
    })
    const ports = {
      bare: await startBare(owner),
      PostgreSQL: portOf(server.hooks),
      embedded: portOf(embedded.hooks),
    }
    const rates = new Map<string, number[]>()
    const latencies = new Map<string, number[]>()
    for (let round = 0; round < ROUNDS; round++) {
      for (const [name, port] of Object.entries(ports)) {
        const result = await runLoad({
          port,
          connections: CONNECTIONS,
          seconds: SECONDS,
          expect: 'HTTP/1.1 202',
          ...request(),
        })
        if (result.refused > 0)
          throw new Error(`${name}: ${result.refused} deliveries were refused`)
        rates.set(name, [...(rates.get(name) ?? []), result.answered / SECONDS])
        latencies.set(name, [...(latencies.get(name) ?? []), quantile(result.milliseconds, 0.99)])
      }
    }
    const rate = (name: string): number => median(rates.get(name) ?? [])
    return [
      ...Object.keys(ports).map((name) => ({
        name: `${name} (median)`,
        value: rate(name),
        unit: '/s',
      })),
      { name: 'PostgreSQL / bare', value: rate('PostgreSQL') / rate('bare'), unit: '' },
      { name: 'embedded / bare', value: rate('embedded') / rate('bare'), unit: '' },
      {
        name: 'p99 PostgreSQL (median)',
        value: median(latencies.get('PostgreSQL') ?? []),
        unit: 'ms',
      },
      { name: 'p99 embedded (median)', value: median(latencies.get('embedded') ?? []), unit: 'ms' },
    ]
  },
}

function request(): { head: string; tail: string } {
  const body = JSON.stringify({ action: 'opened', padding: 'x'.repeat(2_000) })
  const signature = createHmac('sha256', SECRET).update(body).digest('hex')
  const lines = [
    'POST /webhooks/code_host HTTP/1.1',
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    'X-GitHub-Event: pull_request',
    `X-Hub-Signature-256: sha256=${signature}`,
    `Content-Length: ${body.length}`,
  ]
  return { head: `${lines.join('\r\n')}\r\nX-GitHub-Delivery: `, tail: `\r\n\r\n${body}` }
}

async function startBare(owner: Owner): Promise<number> {
  const file = join(ROOT, 'bench', 'helpers', 'bare-receiver.ts')
  const child = spawn(process.execPath, [file, SECRET], { stdio: ['ignore', 'pipe', 'inherit'] })
  owner.teardown(() => child.kill())
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return Number(line.toString())
}

function portOf(url: string): number {
  return Number(new URL(url).port)
}
