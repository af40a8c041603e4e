import Type from 'typebox'
import { Unavailable } from '../../kernel/fault.ts'
import type { Executor } from '../client.ts'
import type { Query } from '../queries.ts'
import { many } from '../rows.ts'

/** Tables come in hundreds at most, the catalogs with them. */
const TABLES_MOST = 1_000

/** A query that lists tables; $1 is how many it gives at most. */
export function tablesQuery(name: string, text: string): Query {
  return { name, text, result: 'many', args: ['int8'], row: Type.Object({ name: Type.String() }) }
}

/** A statement that gives nothing back. */
export function plain(name: string, text: string): Query {
  return { name, text, result: 'exec', args: [], row: undefined }
}

/**
 * Runs a command for each table that is listed, one statement a table, so that others have their turn between them;
 * none follows once it is stopped. A table on which it fails keeps no other one from it: the first failure, which
 * names its table, is thrown at the end. Where the database is out of reach, it ends at once.
 */
export async function eachTable(
  db: Executor,
  listed: Query,
  command: string,
  stopped: () => boolean,
): Promise<void> {
  let failed: { readonly error: unknown } | undefined
  for (const { name } of await many<{ readonly name: string }>(db, listed, [TABLES_MOST])) {
    if (stopped()) break
    const text = `${command} ${name}`
    try {
      await db.run(plain(text, text), [])
    } catch (error) {
      failed ??= { error }
      if (error instanceof Unavailable) break
    }
  }
  if (failed !== undefined) throw failed.error
}
