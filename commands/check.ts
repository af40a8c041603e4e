import type { Database } from '../db/client.ts'
import { migrationState } from '../db/migrate.ts'
import { messageOf } from '../kernel/log.ts'
import { DONE, FAILED, UsageError, type Output } from './command.ts'

/** One thing that was looked at: fine, or what to do about it. */
export interface Finding {
  readonly ok: boolean
  readonly what: string
  readonly detail: string
}

/** Reads the arguments of `check`: whether to print JSON. */
export function parseCheck(args: readonly string[]): { readonly json: boolean } {
  if (args.some((arg) => arg !== '--json'))
    throw new UsageError('"check" takes no argument but --json')
  return { json: args.length > 0 }
}

/** Looks at a database without changing it: does it answer, and do its migrations fit this program? */
export async function checkDatabase(db: Database, what: string): Promise<readonly Finding[]> {
  try {
    await db.ping()
    return [{ ok: true, what: 'database', detail: what }, ...(await checkMigrations(db))]
  } catch (error) {
    return [{ ok: false, what: 'database', detail: `${what}: ${messageOf(error)}` }]
  }
}

/** Prints findings, one line each; the exit code is 1 when one of them is not fine. */
export function reportFindings(
  findings: readonly Finding[],
  json: boolean,
  output: Output,
): number {
  if (json) output.out(JSON.stringify(findings))
  else
    for (const { ok, what, detail } of findings)
      output.out(`${ok ? 'ok  ' : 'FAIL'}  ${what}: ${detail}`)
  return findings.every(({ ok }) => ok) ? DONE : FAILED
}

async function checkMigrations(db: Database): Promise<readonly Finding[]> {
  const { applied, pending, faults } = await migrationState(db)
  const waiting =
    pending.length === 0 ? '' : `, ${pending.length} to be applied by serve or migrate`
  if (faults.length === 0)
    return [{ ok: true, what: 'migrations', detail: `${applied.length} applied${waiting}` }]
  return faults.map((detail) => ({ ok: false, what: 'migrations', detail }))
}
