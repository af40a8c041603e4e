import Type from 'typebox'
import type { Executor } from '../client.ts'
import type { Query } from '../queries.ts'
import { many } from '../rows.ts'

/** Tables come in hundreds at most, the catalogs with them. */
const TABLES_MOST = 1_000

/**
 * By the measure of autovacuum's own settings for dead rows. Beside those, the table that is not vacuumed for longest, a day
 * at least: a crash loses the counts, ids of transactions come round, and rows that only came in want no more than that.
 */
const WORN: Query = {
  name: 'listWornTables',
  text: `
with tables as (
  select format('%I.%I', s.schemaname, s.relname) as name,
         s.last_vacuum,
         s.n_dead_tup > 50 + 0.2 * greatest(c.reltuples, 0) as worn
    from pg_stat_all_tables s
    join pg_class c on c.oid = s.relid
   where c.relkind in ('r', 'm')
)
select name
  from tables
 where worn
    or name = (select name
                 from tables
                where last_vacuum is null
                   or last_vacuum < now() - interval '1 day'
                order by last_vacuum nulls first, name
                limit 1)
 order by name
 limit $1`,
  result: 'many',
  args: ['int8'],
  row: Type.Object({ name: Type.String() }),
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const vacuumQueries: readonly Query[] = [WORN]

/**
 * Frees what was removed and marks what all can see, table by table where there is much of either. One statement a
 * table, so that others have their turn between them; none follows once it is stopped.
 */
export async function vacuumWorn(db: Executor, stopped: () => boolean): Promise<void> {
  for (const { name } of await many<{ readonly name: string }>(db, WORN, [TABLES_MOST])) {
    if (stopped()) return
    const text = `vacuum ${name}`
    await db.run({ name: 'vacuum', text, result: 'exec', args: [], row: undefined }, [])
  }
}
