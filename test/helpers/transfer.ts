import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Backend, Row } from './backends.ts'
import type { Env } from './program.ts'

/** How much to make. */
type SeedSize = {
  events: number
  links: number
  sessions: number
}

/** A day of sessions, one each half an hour, of which every sixth escalates to the next one. */
export const DAY_OF_SESSIONS = 48

const SEED = readFileSync(join(import.meta.dirname, '../fixtures/every-table.sql'), 'utf8')

/** Statements that fill every table of a migrated database. */
export function seedStatements(size: SeedSize) {
  return SEED.replaceAll(/:(events|links|sessions)\b/g, (_, name) =>
    String(size[name as keyof SeedSize]),
  )
}

/** One text for all statements: each call of `query` starts the embedded engine once. */
const CONTENTS = `
set timezone = 'UTC'; set bytea_output = 'hex'; set extra_float_digits = 1;
create or replace function pg_temp.contents() returns table (name text, rows int, sum text) language plpgsql as $$
begin
  return query execute (
    select string_agg(format('select %L, count(*)::int, sum((''x'' || left(md5(t::text), 15))::bit(60)::bigint)::text
                                from %I.%I t', n.nspname || '.' || c.relname, n.nspname, c.relname),
                      ' union all ') || ' order by 1'
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind in ('r', 'v'));
end $$;
select * from pg_temp.contents()`

const SEQUENCES = `
select c.oid::regclass::text as name, nextval(c.oid)::text as next
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind = 'S'
 order by 1`

/** What each table and view holds: how many rows, and a sum over all their columns, which knows no order. */
export async function contentsOf(backend: Backend, env: Env) {
  const results: readonly unknown[] = await backend.query(env, CONTENTS)
  const rows: unknown = results.at(-1)
  if (!Array.isArray(rows)) throw new Error('the statements gave no rows at their end')
  return rows as readonly Row[]
}

/** The next id of each table that has one, which is used up by that. */
export function drawnIds(backend: Backend, env: Env) {
  return backend.query(env, SEQUENCES)
}
