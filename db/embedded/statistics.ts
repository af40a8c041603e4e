import Type from 'typebox'
import type { Executor } from '../client.ts'
import type { Query } from '../queries.ts'
import { many } from '../rows.ts'

/** Tables come in hundreds at most. */
const TABLES_MOST = 1_000

/** PostgreSQL counts changes in its session and passes them on once a second. */
const PASS_ON = plain('passStatisticsOn', 'select pg_stat_force_next_flush()')

/** By the measure of autovacuum's own settings. */
const CHANGED: Query = {
  name: 'listChangedTables',
  text: `
select format('%I.%I', s.schemaname, s.relname) as name
  from pg_stat_user_tables s
  join pg_class c on c.oid = s.relid
 where s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
 order by name
 limit $1`,
  result: 'many',
  args: ['int8'],
  row: Type.Object({ name: Type.String() }),
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const statisticsQueries: readonly Query[] = [PASS_ON, CHANGED]

/**
 * Analyzes each table of which more than 50 rows and a tenth have changed since it was analyzed. This
 * also drops the plans that the one session has made for smaller tables, which it would keep for ever.
 * One statement a table, so that others have their turn between them.
 */
export async function analyzeChanged(db: Executor): Promise<void> {
  await db.run(PASS_ON, [])
  for (const { name } of await many<{ readonly name: string }>(db, CHANGED, [TABLES_MOST])) {
    await db.run(plain('analyze', `analyze ${name}`), [])
  }
}

function plain(name: string, text: string): Query {
  return { name, text, result: 'exec', args: [], row: undefined }
}
