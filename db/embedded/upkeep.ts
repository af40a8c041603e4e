import Type from 'typebox'
import { Unavailable } from '../../kernel/fault.ts'
import type { Executor } from '../client.ts'
import { exec, many, sqlFile } from '../sql-file.ts'

const TableName = Type.Object({ name: Type.String() })

export const upkeepQueries = sqlFile('sql/upkeep.sql', {
  flushStatistics: exec({}),
  listChangedTables: many(TableName, { limit: 'int8' }),
  listTablesToVacuum: many(TableName, { limit: 'int8' }),
})
const { flushStatistics, listChangedTables, listTablesToVacuum } = upkeepQueries

/** There are hundreds at most, catalogs included. */
const MAX_TABLES = 1_000

/** Does on the embedded engine what autovacuum does on a server. */
export type Upkeep = (db: Executor, stopped: () => boolean) => Promise<void>

/**
 * Analyzes tables of which more than 50 rows and a tenth have changed. The session, which never
 * ends, would otherwise keep plans that it made while these tables were small.
 */
export const analyzeTables: Upkeep = async (db, stopped) => {
  await flushStatistics(db, {})
  const tables = await listChangedTables(db, { limit: MAX_TABLES })
  await eachTable(db, tables, 'analyze', stopped)
}

/** Frees the space of removed rows and marks rows that everybody can see. */
export const vacuumTables: Upkeep = async (db, stopped) => {
  const tables = await listTablesToVacuum(db, { limit: MAX_TABLES })
  await eachTable(db, tables, 'vacuum (process_toast false)', stopped)
}

/**
 * Runs a command for each table, one statement each, so that other statements run in between. A
 * failure does not keep other tables from it: the first one, which names its table, is thrown at
 * the end. While the database is unavailable, all of it ends at once.
 */
async function eachTable(
  db: Executor,
  tables: readonly { name: string }[],
  command: string,
  stopped: () => boolean,
): Promise<void> {
  let failed: { error: unknown } | undefined
  for (const { name } of tables) {
    if (stopped()) break
    const text = `${command} ${name}`
    try {
      await db.run({ name: text, text }, [])
    } catch (error) {
      failed ??= { error }
      if (error instanceof Unavailable) break
    }
  }
  if (failed !== undefined) throw failed.error
}
