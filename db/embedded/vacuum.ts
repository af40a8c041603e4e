import type { Executor } from '../client.ts'
import type { Query } from '../queries.ts'
import { eachTable, tablesQuery } from './tables.ts'

/**
 * By the measure of autovacuum's own settings, but from 5,000 rows on in any case: a step holds the only session, and what
 * it marks is written to the log as whole pages. For 5,000 events of 2 KB that came in these are 12 MiB in 30 ms, for as
 * many that were removed 30 to 80 MiB in half a second. What long rows have beside their table (TOAST) is counted by itself.
 * Beside those, tables that were not vacuumed for a day: a restart loses the counts, and ids of transactions come round.
 * Five at a time, so that one that can't be vacuumed does not stand before all others.
 */
const WORN = tablesQuery(
  'listWornTables',
  `
with tables as (
  select format('%I.%I', s.schemaname, s.relname) as name,
         s.last_vacuum,
         s.n_dead_tup > least(50 + 0.2 * greatest(c.reltuples, 0), 5000)
           or s.n_ins_since_vacuum > least(1000 + 0.2 * greatest(c.reltuples, 0), 5000) as worn
    from pg_stat_all_tables s
    join pg_class c on c.oid = s.relid
   where c.relkind in ('r', 'm', 't')
)
select name
  from tables
 where worn
    or name in (select name
                  from tables
                 where last_vacuum is null
                    or last_vacuum < now() - interval '1 day'
                 order by last_vacuum nulls first, name
                 limit 5)
 order by name
 limit $1`,
)

/** The queries of this file, for the test that compares every declaration with a server's. */
export const vacuumQueries: readonly Query[] = [WORN]

/** Frees what was removed and marks what all can see, table by table where there is much of either. */
export async function vacuumWorn(db: Executor, stopped: () => boolean): Promise<void> {
  await eachTable(db, WORN, 'vacuum (process_toast false)', stopped)
}
