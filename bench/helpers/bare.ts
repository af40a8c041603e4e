import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { ROOT } from '../../test/helpers/program.ts'
import type { Owner } from './measure.ts'

/** A ceiling in a process of its own. */
export interface Bare {
  readonly port: number
  readonly pid: number
}

/** Starts a program of this folder whose first line is the port of 127.0.0.1 on which it listens. */
export async function startBare(
  owner: Owner,
  file: `bare-${string}.ts`,
  ...args: readonly string[]
): Promise<Bare> {
  const child = spawn(process.execPath, [join(ROOT, 'bench', 'helpers', file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  owner.teardown(() => child.kill())
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { port: Number(line.toString()), pid: child.pid ?? 0 }
}
