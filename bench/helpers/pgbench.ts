import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { temporaryFolder } from '../../test/helpers/owner.ts'
import { onPath } from '../../test/runner/system-parts.ts'
import type { Owner } from './measure.ts'

/** A statement that pgbench runs prepared, each time in a transaction of its own. */
export interface PgbenchOrder {
  readonly url: string
  readonly clients: number
  readonly seconds: number
  /** Its text, with `:name` for each of the variables. */
  readonly script: string
  readonly variables: Readonly<Record<string, string>>
}

/** Where pgbench is; undefined where it is not installed. */
export const PGBENCH = onPath('pgbench')

/** Transactions a second. Throws when one failed, with what pgbench said. */
export async function pgbench(owner: Owner, order: PgbenchOrder): Promise<number> {
  const { url, clients, seconds, script, variables } = order
  const file = join(await temporaryFolder(owner), 'insert.sql')
  await writeFile(file, script)
  const options = ['-n', '-M', 'prepared', `-c${clients}`, '-j2', `-T${seconds}`, '-f', file]
  const defined = Object.entries(variables).map(([name, value]) => `-D${name}=${value}`)
  const program = PGBENCH ?? 'pgbench'
  const { stdout, stderr } = await promisify(execFile)(program, [
    ...options,
    ...defined,
    url,
  ]).catch(
    // Its own message repeats the whole command, with the database's password.
    (error: { stderr?: string }) => ({ stdout: '', stderr: error.stderr ?? '' }),
  )
  const rate = Number(/^tps = ([\d.]+)/m.exec(stdout)?.[1])
  const failed = Number(/failed transactions: (\d+)/.exec(stdout)?.[1])
  if (!(rate > 0) || failed !== 0) throw new Error(`pgbench failed: ${stdout}${stderr}`)
  return rate
}
