import { backends } from './backends.ts'
import type { Env } from './program.ts'

const [, postgres] = backends

/** What PostgreSQL says when its disk is full: the database counts as out of reach. */
export const FULL = '53100'

/**
 * Has a PostgreSQL server refuse rows, as one that fails between two statements does: `change` names it
 * (`insert on ops.events`), `when` is SQL over the row `new`. Without an error code of its own it is one
 * that never heals. Gives what ends it.
 */
export async function refuseRows(
  env: Env,
  change: string,
  when: string,
  errcode = 'P0001',
): Promise<() => Promise<void>> {
  const query = async (text: string): Promise<void> => void (await postgres.query(env, text))
  await query(
    `create or replace function public.refuse() returns trigger language plpgsql
         as $$ begin raise exception 'refused by the test' using errcode = tg_argv[0]; end $$`,
  )
  await query(
    `create trigger refuse before ${change} for each row when (${when})
       execute function public.refuse('${errcode}')`,
  )
  return () => query(`drop trigger refuse on ${change.split(' on ')[1]}`)
}

/** Transactions that a PostgreSQL server has not committed in this database; it counts them within a second. */
export async function rollbacks(env: Env): Promise<number> {
  const text = `select xact_rollback::int as count from pg_stat_database
    where datname = current_database()`
  return Number((await postgres.query(env, text))[0]?.['count'])
}
