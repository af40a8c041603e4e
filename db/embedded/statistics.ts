import type { Executor } from '../client.ts'
import type { Query } from '../queries.ts'
import { eachTable, plain, tablesQuery } from './tables.ts'

/** PostgreSQL counts changes in its session and passes them on once a second. */
const PASS_ON = plain('passStatisticsOn', 'select pg_stat_force_next_flush()')

/** By the measure of autovacuum's own settings. */
const CHANGED = tablesQuery(
  'listChangedTables',
  `
select format('%I.%I', s.schemaname, s.relname) as name
  from pg_stat_user_tables s
  join pg_class c on c.oid = s.relid
 where s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
 order by name
 limit $1`,
)

/** The queries of this file, for the test that compares every declaration with a server's. */
export const statisticsQueries: readonly Query[] = [PASS_ON, CHANGED]

/**
 * Analyzes each table of which more than 50 rows and a tenth have changed since it was analyzed. This
 * also drops the plans that the one session has made for smaller tables, which it would keep for ever.
 */
export async function analyzeChanged(db: Executor, stopped: () => boolean): Promise<void> {
  await db.run(PASS_ON, [])
  await eachTable(db, CHANGED, 'analyze', stopped)
}
