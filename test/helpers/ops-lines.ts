import type { Backend } from './backends.ts'
import type { Env } from './program.ts'
import type { EventStream } from './sse.ts'

/**
 * Begins a session that no server runs and whose lease never lapses: the test says what it puts out
 * and when it ends. Only on postgres, beside servers. Gives its id.
 */
export async function beginByHand(backend: Backend, env: Env, prompt = 'by hand'): Promise<number> {
  const [row] = await backend.query(
    env,
    `insert into ops.sessions (tier, model, status, trigger, started_at, prompt_text, holder, machine, heartbeat_at)
     values (1, 'none', 'running', 'manual', now(), $1, 'test', 'test', now() + interval '1 hour')
     returning id`,
    [prompt],
  )
  return Number(row?.['id'])
}

/** Stores lines `line 7` from a number on, and notifies as a server does unless told otherwise. */
export async function storeLines(
  backend: Backend,
  env: Env,
  session: number,
  first: number,
  count: number,
  { bytes = 0, tells = true, text = 'line' }: StoredLines = {},
): Promise<void> {
  await backend.query(
    env,
    `with saved as (
       insert into ops.session_lines (session_id, seq, at, kind, text)
       select $1, n, now(), 'text', $5 || ' ' || n || repeat('x', $4)
         from generate_series($2::integer, $3::integer) as n
       returning seq
     )
     select case when $6 then pg_notify('ops_lines', $1::bigint::text) end from (select count(*) from saved) as done`,
    [session, first, first + count - 1, bytes, text, tells],
  )
}

/** How lines are stored. */
export type StoredLines = { bytes?: number; tells?: boolean; text?: string }

/** Ends a session that was begun by hand. */
export async function endByHand(
  backend: Backend,
  env: Env,
  session: number,
  status: string,
  { tells = true }: { tells?: boolean } = {},
): Promise<void> {
  await backend.query(
    env,
    `with ended as (
       update ops.sessions set status = $2, ended_at = now(), exit_code = 0 where id = $1 returning id
     )
     select case when $3 then pg_notify('ops_sessions', '') end from ended`,
    [session, status, tells],
  )
}

/** The numbers of the lines that a stream has given. */
export function linesOf(stream: EventStream): readonly number[] {
  return stream.events.filter(({ event }) => event === 'line').map(({ id }) => Number(id))
}
