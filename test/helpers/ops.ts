import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { apiOf } from './api.ts'
import { postgres, type Backend } from './backends.ts'
import { request } from './http.ts'
import { temporaryFolder, type Owner } from './owner.ts'
import type { Env } from './program.ts'
import { expectStatus } from './refusals.ts'
import { startServerProcess, type ServerProcess } from './server-process.ts'
import { startServer, type TestServer } from './server.ts'
import type { EventStream } from './sse.ts'
import { until } from './until.ts'

/** The longest pause between two looks whether a session has ended. */
const LONGEST_PAUSE_MS = 250

/** An ops service. */
export type OpsServer = ReturnType<typeof opsServer>

/** A session as the API shows it. */
export type Session = Readonly<
  Record<'id' | 'tier', number> &
    Record<'model' | 'status' | 'started_at' | 'trigger', string> &
    Record<'ended_at' | 'prompt_text', string | null> &
    Record<'exit_code' | 'cost_usd' | 'num_turns' | 'duration_ms', number | null> &
    Record<'parent_session_id', number | null>
>

/** An event as the API shows it. */
export type Event = Readonly<
  Record<'level' | 'message' | 'created_at', string> &
    Record<'id', number> & { session_id: number | null; service: string | null }
>

/** A memory as the API shows it. */
export type Memory = Readonly<
  Record<'id' | 'confidence' | 'tier', number> &
    Record<'category' | 'observation' | 'created_at' | 'updated_at', string> & {
      active: boolean
      service: string | null
      session_id: number | null
    }
>

/**
 * Starts `serve ops` on a fresh database, or on the one that `env` names. Without `OPS_INVENTORY` its
 * inventory is empty: nothing of this machine decides a test.
 */
export async function startOps(t: Owner, backend: Backend, env: Env = {}) {
  const variables = await opsEnv(t, backend, env)
  const server = await startServer(t, { services: ['ops'], env: variables })
  return opsServer(server, variables)
}

/** An ops service in a process of its own. */
export type OpsProcess = Omit<OpsServer, 'server'> & { server: ServerProcess }

/** The same in a process of its own, which may be given flags. */
export async function startOpsProcess(
  t: Owner,
  backend: Backend,
  env: Env = {},
  flags: readonly string[] = [],
) {
  const variables = await opsEnv(t, backend, env)
  const server = await startServerProcess(t, { services: ['ops'], env: variables, flags })
  return { ...opsServer(server, variables), server }
}

async function opsEnv(t: Owner, backend: Backend, env: Env): Promise<Env> {
  const named = 'DATABASE_URL' in env || 'GATEHOUSE_DATA_DIR' in env
  return {
    ...(named ? {} : await backend.env(t)),
    ...('OPS_INVENTORY' in env ? {} : { OPS_INVENTORY: await inventoryFile(t, { services: [] }) }),
    ...env,
  }
}

/** What `startOps` gives, for a server that runs already. */
export function opsServer(server: TestServer, env: Env) {
  const base = server.ops
  return {
    server,
    base,
    /** Its variables: another server with the same ones goes on with its database. */
    env,
    api: apiOf(base),
    /** Asks its database, where that is PostgreSQL. */
    query: (text: string, params?: readonly (string | number | null)[]) =>
      postgres.query(env, text, params),
    /** The text of a page, or of a part that htmx asks for. */
    page: async (path: string, headers: Record<string, string> = { accept: 'text/html' }) =>
      (await request(base + path, { headers })).text,
  }
}

/** The rows of a list of the API, such as `sessions` or `events?limit=1000`. */
export async function listOf<T>({ api }: Pick<OpsServer, 'api'>, path: string) {
  const { json } = await api<Readonly<Record<string, readonly T[]>>>('GET', `/${path}`)
  return json[/^\w+/.exec(path)?.[0] ?? ''] ?? []
}

/** The events that the API lists, newest first. */
export function eventsOf(ops: Pick<OpsServer, 'api'>, query = '') {
  return listOf<Event>(ops, `events${query}`)
}

/** The events of a session, the newest first. Checks write events, too, at any time: those have no session. */
export async function eventsOfSession(
  ops: Pick<OpsServer, 'api'>,
  id: number,
): Promise<readonly Event[]> {
  return (await eventsOf(ops, '?limit=1000')).filter(({ session_id }) => session_id === id)
}

/** The sessions that the API lists, newest first. */
export function sessionsOf(ops: Pick<OpsServer, 'api'>, query = '') {
  return listOf<Session>(ops, `sessions${query}`)
}

/** The memories that the API lists, surest first. */
export function memoriesOf(ops: Pick<OpsServer, 'api'>, query = '') {
  return listOf<Memory>(ops, `memories${query}`)
}

/** Writes an inventory and gives its path, the value of `OPS_INVENTORY`. */
export async function inventoryFile(t: Owner, inventory: object): Promise<string> {
  const file = join(await temporaryFolder(t, 'inventory'), 'inventory.json')
  writeFileSync(file, JSON.stringify(inventory))
  return file
}

/**
 * Sessions alone look at the checks of a server on PostgreSQL: as if another instance had begun to
 * look at each of them.
 */
export async function holdChecks(env: Env) {
  await postgres.query(
    env,
    `create function ops.hold_check() returns trigger language plpgsql as $$
       begin
         new.claimed_until := now() + interval '2 minutes';
         return new;
       end $$;
     create trigger hold_check before insert or update on ops.checks
       for each row execute function ops.hold_check()`,
  )
}

/**
 * Starts an ops service of the probe on PostgreSQL, whose inventory the test writes anew for each session. Its
 * first session, at start, had no checks and has ended.
 */
export async function startProbe(t: Owner, env: Env = {}) {
  const file = await inventoryFile(t, { services: [] })
  const ops = await startOps(t, postgres, { ...env, OPS_INVENTORY: file })
  await ended(ops)
  await holdChecks(ops.env)
  let written: { services?: readonly { checks?: readonly { name?: string; type: string }[] }[] } =
    {}
  /** Replaces the inventory by this, which may be wrong. */
  const write = (inventory: object) => {
    written = inventory
    writeFileSync(file, JSON.stringify(inventory))
  }
  /** Runs a session and gives what it found. */
  async function look() {
    const session = await runSession(ops)
    const events = (await eventsOfSession(ops, session.id)).toReversed()
    const line = /^(ok|warn|FAIL|unknown) +.*?: (.*?): (.*) \(\d+ ms\)$/gm
    const found = [...outputOf(ops.env, session.id).matchAll(line)].map(
      ([, state = '', name = '', message]) => ({ state, name, said: `${name}: ${message}` }),
    )
    const checks = written.services?.flatMap((service) => service.checks ?? []) ?? []
    // One without a name is called by its type, and by what it looks at.
    const placeOf = (name: string) =>
      checks.findIndex(
        (check) => check.name === name || (!check.name && name.startsWith(check.type)),
      )
    const states = Object.fromEntries(found.map(({ name, state }) => [name, state]))
    return {
      session,
      /** Those of the session, oldest first, and their messages. */
      events,
      messages: events.map(({ message }) => message),
      /** The word of the state of each check, by name: ok, warn, FAIL or unknown. */
      states,
      good: Object.fromEntries(found.map(({ name, state }) => [name, state === 'ok'])),
      /** What each check that is not good said, as `name: message`, in the order of the inventory. */
      said: found
        .filter(({ state }) => state !== 'ok')
        .toSorted((a, b) => placeOf(a.name) - placeOf(b.name))
        .map(({ said }) => said),
    }
  }
  return Object.assign(ops, {
    write,
    look,
    /** The same with these checks, of a service `shop`. */
    lookAt(checks: readonly object[]) {
      write({ services: [{ name: 'shop', checks }] })
      return look()
    },
  })
}

/** The output of a session that has ended, from its file. */
export function outputOf(env: Env, session: number): string {
  const results = join(env['GATEHOUSE_DATA_DIR'] ?? '', 'ops', 'results')
  const lines = readFileSync(join(results, `session-${session}.ndjson`), 'utf8')
    .trim()
    .split('\n')
  return lines.map((line): string => JSON.parse(line).text).join('\n')
}

/** What holds sessions of the probe up for as long as a test wants. */
export type Gate = Awaited<ReturnType<typeof startGate>>

/**
 * An inventory with one check, which holds sessions up until the gate opens. The rounds of checks
 * learn nothing of it for a minute, so each session looks at it itself.
 */
export async function startGate(t: Owner) {
  const folder = await temporaryFolder(t, 'gate')
  const file = (name: string) => join(folder, name)
  writeFileSync(
    file('check'),
    `#!/bin/sh
     # A session marks what it starts.
     [ -n "$STARTED_BY_GATEHOUSE" ] || exec sleep 60
     : > "${folder}/waits-$$"
     while [ -e "${folder}/waits-$$" ] && [ ! -e "${folder}/open" ]; do sleep 0.05; done
     rm -f "${folder}/waits-$$"
     exec cat "${folder}/well"`,
    { mode: 0o755 },
  )
  writeFileSync(file('well'), '')
  const check = {
    type: 'command',
    name: 'gate',
    argv: [file('check')],
    timeout_s: 60,
    level: 'critical',
  }
  const waiting = () =>
    readdirSync(folder).filter((name) => name.startsWith('waits-') && isAlive(name.slice(6)))
  const letThrough = () => {
    for (const name of waiting()) rmSync(file(name), { force: true })
  }
  return {
    inventory: await inventoryFile(t, { services: [{ name: 'gate', checks: [check] }] }),
    /** Sessions that wait now. */
    waiting: () => waiting().length,
    letThrough,
    /** Lets those go that wait now, once there is one. */
    async pass() {
      await until(() => waiting().length > 0, 'a session at the gate')
      letThrough()
    },
    /** Lets all go, those to come, too; unless `well`, the check fails. */
    open(well = true) {
      if (well) writeFileSync(file('well'), '')
      else rmSync(file('well'), { force: true })
      writeFileSync(file('open'), '')
      letThrough()
    },
    /** Holds sessions up again. */
    shut: () => rmSync(file('open'), { force: true }),
  }
}

/** Whether a process runs: one that was ended leaves its file behind. */
function isAlive(pid: string) {
  try {
    return process.kill(Number(pid), 0)
  } catch {
    return false
  }
}

/** Starts a session by the API, or by the form, which chooses the tier; throws when that is refused. */
export async function trigger(
  { api, base = '' }: Pick<OpsServer, 'api'> & Partial<Pick<OpsServer, 'base'>>,
  prompt = 'look',
  tier?: number,
): Promise<Session> {
  if (tier === undefined) {
    const made = api<Session>('POST', '/sessions/trigger', { prompt })
    return (await expectStatus(201, made, 'trigger')).json
  }
  const body = new URLSearchParams({ prompt, tier: String(tier) }).toString()
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const made = await request(`${base}/sessions/trigger`, { method: 'POST', headers, body })
  const [path] = /\/sessions\/\d+/.exec(String(made.headers.location)) ?? []
  if (path === undefined) throw new Error(`trigger: ${made.status} ${made.text}`)
  return (await api<Session>('GET', path)).json
}

/** Runs a session to its end. */
export async function runSession(
  ops: Pick<OpsServer, 'api' | 'base'>,
  prompt?: string,
  tier?: number,
): Promise<Session> {
  return ended(ops, (await trigger(ops, prompt, tier)).id)
}

/** Waits until a session, or the newest one, has ended, and gives it; none of them runs then. */
export function ended(
  ops: Pick<OpsServer, 'api'>,
  id?: number,
  timeoutMs = 30_000,
): Promise<Session> {
  // The one that is waited for is mostly among the newest two.
  let limit = 2
  return until(
    async () => {
      const list = await sessionsOf(ops, `?limit=${limit}`)
      const wanted = list.find((session) => id === undefined || session.id === id)
      if (wanted === undefined) limit = 20
      return wanted?.status === 'running' ? undefined : wanted
    },
    `the end of session ${id ?? '(the newest)'}`,
    timeoutMs,
    LONGEST_PAUSE_MS,
  )
}

/**
 * Begins a session that no server runs and whose lease never lapses: the test says what it puts out
 * and when it ends. Only on postgres, beside servers. Gives its id.
 */
export async function beginByHand(
  backend: Backend,
  env: Env,
  prompt = 'by hand',
): Promise<number> {
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
  { bytes = 0, tells = true, text = 'line' } = {},
) {
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

/** Ends a session that was begun by hand. */
export async function endByHand(
  backend: Backend,
  env: Env,
  session: number,
  status: string,
  { tells = true } = {},
) {
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
export function linesOf(stream: EventStream) {
  return stream.events.filter(({ event }) => event === 'line').map(({ id }) => Number(id))
}
