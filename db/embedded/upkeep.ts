import * as Type from '../../kernel/schema.ts'
import { Unavailable } from '../../kernel/fault.ts'
import type { Executor } from '../client.ts'
import { wasCanceled } from '../errors.ts'
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
  await eachTable(tables, stopped, (name) => runCommand(db, `analyze ${name}`))
}

/** A vacuum that took too long holds everybody up, and would take as long at once. */
const REST_MS = 3_600_000

/**
 * Gives what frees the space of removed rows and marks rows that everybody can see. `elapsed`
 * gives milliseconds; `onVacuum` is called for each table that is done.
 */
export function createVacuum(elapsed: () => number, onVacuum: () => void): Upkeep {
  /** When the vacuum of a table was ended. */
  const endedAt = new Map<string, number>()

  return async (db, stopped) => {
    const all = await listTablesToVacuum(db, { limit: MAX_TABLES })
    const tables = all.filter(({ name }) => {
      return elapsed() - (endedAt.get(name) ?? Number.NEGATIVE_INFINITY) >= REST_MS
    })
    await eachTable(tables, stopped, async (name) => {
      try {
        await runCommand(db, `vacuum (process_toast false) ${name}`)
      } catch (error) {
        if (!wasCanceled(error)) throw error
        return void endedAt.set(name, elapsed())
      }
      endedAt.delete(name)
      onVacuum()
    })
    // Said as long as it is true, and not only in the run in which it happened.
    const [waiting] = endedAt.keys()
    if (waiting === undefined) return
    throw new Error(`${waiting}: it took too long and was ended; tried again within the hour`)
  }
}

async function runCommand(db: Executor, text: string) {
  await db.run({ name: text, text }, [])
}

/**
 * Runs a command for each table, one statement each, so that other statements run in between. A
 * failure does not keep other tables from it: the first one, which names its table, is thrown at
 * the end. While the database is unavailable, all of it ends at once.
 */
async function eachTable(
  tables: readonly { name: string }[],
  stopped: () => boolean,
  run: (name: string) => Promise<void>,
): Promise<void> {
  let failed: { error: unknown } | undefined
  for (const { name } of tables) {
    if (stopped()) break
    try {
      await run(name)
    } catch (error) {
      failed ??= { error }
      if (error instanceof Unavailable && !wasCanceled(error)) break
    }
  }
  if (failed !== undefined) throw failed.error
}
