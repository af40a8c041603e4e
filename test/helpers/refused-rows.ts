import { backends } from './backends.ts'
import type { Env } from './program.ts'

const [, postgres] = backends

/**
 * Has a PostgreSQL server refuse rows, as one that fails between two statements does: `change` names it
 * (`insert on ops.events`), `when` is SQL over the row `new`. Gives what ends it.
 */
export async function refuseRows(
  env: Env,
  change: string,
  when: string,
): Promise<() => Promise<void>> {
  const query = async (text: string): Promise<void> => void (await postgres.query(env, text))
  await query(
    `create function public.refuse() returns trigger language plpgsql
         as $$ begin raise exception 'refused by the test'; end $$`,
  )
  await query(
    `create trigger refuse before ${change} for each row when (${when}) execute function public.refuse()`,
  )
  return () => query('drop function public.refuse() cascade')
}
