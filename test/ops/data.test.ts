import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import type { Test } from 'tap'
import { backends, eachBackend } from '../helpers/backends.ts'
import type { Backend } from '../helpers/backends.ts'
import { inventoryFile, startOps } from '../helpers/ops-setup.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import type { TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const OPERATIONS = [
  { name: 'restart', action_type: 'restart', argv: ['true'] },
  {
    ...{ name: 'renew', action_type: 'renewal', argv: ['true'] },
    cooldown: { count: 1, window_s: 100 * 24 * 3_600 },
  },
]

/** Adds a session that ended so many days ago, with an event, an action, an alert and lines. Gives its id. */
async function addSession(
  backend: Backend,
  env: Env,
  days: number,
  { parent = null, lines = 1 }: { parent?: number | null; lines?: number } = {},
): Promise<number> {
  const [row] = await backend.query(
    env,
    `with at as (select now() - $1::integer * interval '1 day' as at), made as (
       insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at,
                                 parent_session_id, chain_id)
       select 1, 'm', 'completed', 'api', at, at, 'h', 'm', at, $2::bigint, $2::bigint from at
       returning id, ended_at
     ), lines as (
       insert into ops.session_lines (session_id, seq, at, kind, text)
       select id, n, ended_at, 'text', 'x' from made, generate_series(1, $3::integer) as n
     ), event as (
       insert into ops.events (session_id, level, message, created_at) select id, 'info', $1::text, ended_at from made
     ), action as (
       insert into ops.actions (session_id, service, action_type, operation, at)
       select id, 's', 'restart', $1::text, ended_at from made
     ), alert as (
       insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome, session_id)
       select id::text, $1::text, 'one', ended_at, ended_at, 'triggered', id from made
       returning id, last_seen
     ), alert_text as (
       insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
       select id, 'one', 't', 'p', last_seen, last_seen from alert
     )
     select id from made`,
    [days, parent, lines],
  )
  return Number(row?.['id'])
}

/** The numbers of days that rows are old which are left, by table. */
async function leftIn(backend: Backend, env: Env): Promise<Readonly<Record<string, unknown>>> {
  const [row] = await backend.query(
    env,
    `select array(select distinct session_id::integer from ops.session_lines l join ops.sessions s on s.id = session_id
                   where s.holder in ('h', 'test') order by 1) as lines,
            array(select id::integer from ops.sessions where holder in ('h', 'test') order by 1) as sessions,
            array(select message::integer from ops.events where message ~ '^[0-9]+$' order by 1) as events,
            array(select operation::integer from ops.actions order by 1) as actions,
            array(select source::integer from ops.alerts order by 1) as alerts`,
  )
  return row ?? {}
}

/** Waits for a run of retention that removed something, and gives what it says of it. */
async function pruned({ logs }: TestServer): Promise<Readonly<Record<string, unknown>>> {
  const line = await until(
    async () => logs().find((text) => text.includes('"pruned"')),
    'a run of retention',
  )
  return JSON.parse(line)
}

async function resultFiles(t: Test, ages: Readonly<Record<string, number>>): Promise<string> {
  const folder = await temporaryFolder(t, 'results')
  for (const [name, days] of Object.entries(ages)) {
    const file = join(folder, name)
    writeFileSync(file, '{}\n')
    const at = Date.now() / 1_000 - days * 24 * 3_600
    utimesSync(file, at, at)
  }
  return folder
}

await eachBackend(
  t,
  'what is old is removed at the start, and nothing else',
  async (t: Test, backend) => {
    const results = await resultFiles(t, {
      ...{ 'session-1.ndjson': 31, 'session-2.ndjson': 29, 'session-3.ndjson.gz': 400 },
      ...{ 'session-.ndjson': 400, 'my-session-4.ndjson': 400 },
    })
    mkdirSync(join(results, 'session-5.ndjson'))
    const inventory = await inventoryFile(t, {
      services: [{ name: 's', checks: [], operations: OPERATIONS }],
    })
    const env = {
      ...(await backend.env(t)),
      ...{ OPS_RESULTS_DIR: results, OPS_INVENTORY: inventory },
    }
    await addSession(backend, env, 120, { lines: 1_200 })
    const old = await addSession(backend, env, 92)
    await addSession(backend, env, 91, { parent: old })
    const half = await addSession(backend, env, 93)
    const young = await addSession(backend, env, 89, { parent: half })
    const quiet = await addSession(backend, env, 31)
    const recent = await addSession(backend, env, 29)

    const { server } = await startOps(t, backend, env)
    const log = await pruned(server)
    t.match(log, { lines: 1_206 - 1, sessions: 3, events: 4, actions: 1, alerts: 4, files: 1 })
    await server.stop()
    t.same(await leftIn(backend, env), {
      lines: [recent],
      sessions: [half, young, quiet, recent],
      events: [29, 31, 89],
      actions: [29, 31, 89, 91, 92, 93],
      alerts: [29, 31, 89],
    })
    t.same(
      readdirSync(results).filter(
        (name) => !existsSync(join(results, name)) || /^s.*[1-5]/.test(name),
      ),
      ['session-2.ndjson', 'session-3.ndjson.gz', 'session-5.ndjson'],
    )
  },
)

const [, postgres] = backends

t.test('0 keeps sessions for ever; output has its own time; what runs stays', async (t) => {
  const env = { ...(await postgres.env(t)), OPS_RETENTION_DAYS: '0', OPS_LINES_RETENTION_DAYS: '2' }
  const old = await addSession(postgres, env, 4_000)
  const parent = await addSession(postgres, env, 3)
  const child = await addSession(postgres, env, 3, { parent })
  await postgres.query(
    env,
    `update ops.sessions
        set status = 'running', ended_at = null, holder = 'test', heartbeat_at = now() + interval '1 hour'
      where id = $1`,
    [child],
  )
  const { server } = await startOps(t, postgres, env)
  t.match(await pruned(server), { lines: 1, sessions: 0, events: 0 })
  const left = await leftIn(postgres, env)
  t.match(left, { lines: [parent, child], sessions: [old, parent, child] })
  t.match(left, { events: [3, 3, 4_000], actions: [3, 3, 4_000], alerts: [3, 3, 4_000] })
  await server.stop()

  const kept = { ...env, OPS_RETENTION_DAYS: '1', OPS_LINES_RETENTION_DAYS: '0' }
  const later = await startOps(t, postgres, kept)
  t.match(await pruned(later.server), { lines: 0, sessions: 1 }, 'and output goes with it')
  t.match(await leftIn(postgres, env), { lines: [parent, child], sessions: [parent, child] })
})

t.test('of several instances one removes at a time, and all is removed once', async (t) => {
  const env = await postgres.env(t)
  for (let days = 100; days < 130; days++) await addSession(postgres, env, days, { lines: 200 })
  const servers = await Promise.all([1, 2].map(() => startOps(t, postgres, env)))
  await until(async () => {
    const left = await leftIn(postgres, env)
    return Object.values(left).every((rows) => Array.isArray(rows) && rows.length === 0)
  }, 'everything old to be removed')
  for (const { server } of servers) await server.stop()
  const runs = servers
    .flatMap(({ server }) => server.logs())
    .filter((line) => line.includes('"pruned"'))
    .map((line): Record<string, number> => JSON.parse(line))
  const sum = (what: string): number => runs.reduce((all, run) => all + (run[what] ?? 0), 0)
  t.same([sum('lines'), sum('sessions'), sum('alerts')], [6_000, 30, 30])
  t.notMatch(servers.flatMap(({ server }) => server.logs()).join('\n'), /prune failed/)
})
