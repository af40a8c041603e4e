import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../db/client.ts'
import { migrationState } from '../db/migrate.ts'
import { openDatabase } from '../db/open.ts'
import type { ConfigSource } from '../kernel/config.ts'
import { messageOf, type Log } from '../kernel/log.ts'
import { DONE, FAILED, type Output } from './command.ts'

/** One thing that was looked at: fine, or what to do about it. */
interface Finding {
  readonly ok: boolean
  readonly what: string
  readonly detail: string
}

/**
 * `gatehouse check`: configuration (already read when this runs), database and migrations, without
 * changing anything. One line each; exit code 1 when one of them is not fine.
 */
export async function runCheck(
  config: ConfigSource,
  json: boolean,
  log: Log,
  output: Output,
): Promise<number> {
  const findings = [{ ok: true, what: 'configuration', detail: `${config.origins.size} variables` }]
  findings.push(...(await checkDatabase(config, log)))
  if (json) output.out(JSON.stringify(findings))
  else
    for (const { ok, what, detail } of findings)
      output.out(`${ok ? 'ok  ' : 'FAIL'}  ${what}: ${detail}`)
  return findings.every(({ ok }) => ok) ? DONE : FAILED
}

async function checkDatabase(config: ConfigSource, log: Log): Promise<readonly Finding[]> {
  const { DATABASE_URL: url, GATEHOUSE_DATA_DIR: dataDirectory } = config.current
  // Opening the embedded engine would create the directory, and a check changes nothing.
  if (url === undefined && !existsSync(join(dataDirectory, 'pg'))) {
    return [{ ok: true, what: 'database', detail: `embedded, not created yet in ${dataDirectory}` }]
  }
  const what = url === undefined ? `embedded in ${dataDirectory}` : 'PostgreSQL server'
  try {
    const database = await openDatabase({ url, dataDirectory }, log)
    try {
      await database.db.ping()
      return [{ ok: true, what: 'database', detail: what }, ...(await checkMigrations(database.db))]
    } finally {
      await database.close()
    }
  } catch (error) {
    return [{ ok: false, what: 'database', detail: `${what}: ${messageOf(error)}` }]
  }
}

async function checkMigrations(db: Database): Promise<readonly Finding[]> {
  const { applied, pending, faults } = await migrationState(db)
  const waiting =
    pending.length === 0 ? '' : `, ${pending.length} to be applied by serve or migrate`
  if (faults.length === 0)
    return [{ ok: true, what: 'migrations', detail: `${applied.length} applied${waiting}` }]
  return faults.map((detail) => ({ ok: false, what: 'migrations', detail }))
}
