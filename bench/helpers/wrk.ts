import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../test/helpers/program.ts'
import { onPath } from '../../test/runner/system-parts.ts'
import { runLoad } from './load.ts'
import type { LoadOrder } from './load-worker.ts'
import { quantile } from './measure.ts'

/** What one round of load measured. */
export interface LoadRound {
  readonly perSecond: number
  /** Milliseconds. */
  readonly p99: number
  readonly answered: number
}

/** One thread of wrk with a script of this folder, which loads `report.lua`. */
export interface WrkOrder {
  readonly port: number
  readonly connections: number
  readonly seconds: number
  readonly script: `${string}.lua`
  readonly args: readonly string[]
}

/** Whether wrk is here; else our own client makes the load, which takes more of the machine. */
export const HAS_WRK = onPath('wrk') !== undefined

/** A round of load with a random id in each request, by wrk where it is installed, else by our own client. */
export async function loadRound(order: LoadOrder): Promise<LoadRound> {
  const { port, connections, seconds, requests } = order
  if (!HAS_WRK) return ownLoad(order)
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-load-'))
  const file = join(folder, 'requests')
  const seed = String(randomInt(2 ** 31))
  const texts = requests.map(({ head, tail }) => {
    return `${Buffer.byteLength(head)} ${Buffer.byteLength(tail)}\n${head}${tail}\n`
  })
  try {
    writeFileSync(file, texts.join(''))
    return await wrkLoad({ port, connections, seconds, script: 'ingest.lua', args: [file, seed] })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** A round of load by wrk. Throws when a request failed or got a status of 400 or above. */
export async function wrkLoad(order: WrkOrder): Promise<LoadRound> {
  const { port, connections, seconds, script, args } = order
  const options = ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', `bench/helpers/${script}`]
  const { stdout } = await promisify(execFile)(
    'wrk',
    [...options, `http://127.0.0.1:${port}`, '--', ...args],
    { cwd: ROOT },
  )
  const [, answered = 0, microseconds = 0, failed = 0, p99 = 0] =
    /^result (\d+) (\d+) (\d+) (\d+)$/m.exec(stdout)?.map(Number) ?? []
  if (answered === 0 || failed > 0) throw new Error(`wrk failed ${failed} times: ${stdout}`)
  return { perSecond: answered / (microseconds / 1e6), p99: p99 / 1000, answered }
}

/** The same by our own client. Throws when an answer does not begin as the order expects. */
export async function ownLoad(order: LoadOrder): Promise<LoadRound> {
  const { answered, refused, milliseconds } = await runLoad(order)
  if (refused > 0) throw new Error(`${refused} answers were not ${order.expect}`)
  return { perSecond: answered / order.seconds, p99: quantile(milliseconds, 0.99), answered }
}
