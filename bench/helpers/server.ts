import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { temporaryFolder } from '../../test/helpers/owner.ts'
import { residentKib, statFields } from '../../test/helpers/process-figures.ts'
import { ROOT } from '../../test/helpers/program.ts'
import { parseReady, type Service } from '../../test/helpers/server.ts'
import type { Owner } from './measure.ts'

/** A running product. */
export interface BenchServer {
  readonly hooks: string
  readonly links: string
  /** Empty where it does not run. */
  readonly ops: string
  readonly pid: number
  /** Milliseconds from spawn to the ready line. */
  readonly readyMs: number
  stop(): Promise<void>
}

/** Starts these services on free ports. Without `onLog` the log is thrown away and costs the measurement nothing. */
export async function startBenchServer(
  owner: Owner,
  env: Readonly<Record<string, string | undefined>>,
  services: readonly Service[] = ['hooks', 'links'],
  onLog?: (text: string) => void,
): Promise<BenchServer> {
  // As `npm start` does, with the user's cache of compiled modules.
  const own = {
    PATH: process.env['PATH'],
    HOOKS_ADDR: '127.0.0.1:0',
    LINKS_ADDR: '127.0.0.1:0',
    OPS_ADDR: '127.0.0.1:0',
    GATEHOUSE_DATA_DIR: await temporaryFolder(owner),
    MALLOC_TRIM_THRESHOLD_: '1048576',
  }
  const started = performance.now()
  const args = ['gatehouse.js', 'serve', ...services]
  const options = { cwd: ROOT, env: { ...own, ...env } }
  const child =
    onLog === undefined
      ? spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'ignore'] })
      : spawn(process.execPath, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  if (onLog !== undefined) child.stderr?.setEncoding('utf8').on('data', onLog)
  const exited = once(child, 'exit')
  async function stop(): Promise<void> {
    child.kill('SIGTERM')
    await exited
  }
  owner.teardown(stop)
  for await (const line of createInterface(child.stdout)) {
    const addresses = parseReady(`${line}\n`)
    if (addresses === undefined) continue
    const { hooks = '', links = '', ops = '' } = addresses
    return {
      hooks,
      links,
      ops,
      pid: child.pid ?? 0,
      readyMs: performance.now() - started,
      stop,
    }
  }
  throw new Error('The server ended before it was ready; start it by hand to see why')
}

/** The port of an address. */
export function portOf(base: string): number {
  return Number(new URL(base).port)
}

/** Seconds of the processor that a process has taken, all its threads together, to a hundredth. */
export function cpuSeconds(pid: number): number {
  const fields = statFields(pid)
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Resident memory of a process, in bytes. */
export function residentBytes(pid: number): number {
  return residentKib(pid) * 1024
}
