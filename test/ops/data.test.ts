import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { t } from 'tap'
import { postgres } from '../helpers/backends.ts'
import { inventoryFile, memoriesOf, startOps } from '../helpers/ops.ts'
import { temporaryFolder } from '../helpers/owner.ts'
import type { Env } from '../helpers/program.ts'
import type { TestServer } from '../helpers/server.ts'
import { until } from '../helpers/until.ts'

const OPERATIONS = [
  { name: 'restart', action_type: 'restart', argv: ['true'] },
  {
    name: 'renew',
    action_type: 'renewal',
    argv: ['true'],
    cooldown: { count: 1, window_s: 100 * 24 * 3_600 },
  },
]

/** A session that ended so many days ago, in the chain of another one or its own. */
type OldSession = { days: number; lines?: number; chain?: OldSession }

/**
 * Adds sessions, each with an event, an action, an alert and lines, and memories of several ages. Gives the
 * id of each session.
 */
async function addSessions(env: Env, sessions: readonly OldSession[]) {
  // Above those that the database gives.
  const ids = new Map(sessions.map((session, at) => [session, 1_001 + at]))
  const rows = sessions.map((session) => {
    const { days, lines = 1, chain } = session
    return { id: ids.get(session), days, lines, parent: chain && ids.get(chain) }
  })
  await postgres.query(
    env,
    `with given as (
       select *, now() - days * interval '1 day' as at
         from json_to_recordset($1::text::json) as _(id bigint, days integer, lines integer, parent bigint)
     ), made as (
       insert into ops.sessions (id, tier, model, status, trigger, started_at, ended_at, holder, machine, heartbeat_at,
                                 parent_session_id, chain_id)
       overriding system value
       select id, 1, 'm', 'completed', 'api', at, at, 'h', 'm', at, parent, parent from given
     ), lines as (
       insert into ops.session_lines (session_id, seq, at, kind, text)
       select id, n, at, 'text', 'x' from given, generate_series(1, lines) as n
     ), event as (
       insert into ops.events (session_id, level, message, created_at) select id, 'info', days, at from given
     ), action as (
       insert into ops.actions (session_id, service, action_type, operation, at)
       select id, 's', 'restart', days, at from given
     ), alert as (
       insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome)
       select id::text, days, 'one', at, at, 'triggered' from given
       returning id, last_seen
     ), memories as (
       insert into ops.memories (category, observation, confidence, active, created_at, updated_at, fades_at, tier)
       select 'c', v.name, v.confidence, true, now(), now(), now() + (37 - v.days) * interval '1 day', 0
         from (values ('fresh', 0.7, 36), ('once', 0.7, 37), ('twice', 0.7, 44), ('rests', 0.4, 44),
                      ('stays', 0.4, 37), ('rounds', 0.3996, 37), ('gone', 0.1, 200)) v(name, confidence, days)
     )
     insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
     select id, 'one', 't', 'p', last_seen, last_seen from alert`,
    [JSON.stringify(rows)],
  )
  return ids
}

/** The numbers of days that rows are old which are left, by table. */
async function leftIn(env: Env) {
  const [row] = await postgres.query(
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
async function pruned({ logs }: TestServer): Promise<object> {
  const find = () => logs().find((text) => text.includes('"pruned"'))
  return JSON.parse(await until(find, 'a run of retention'))
}

await t.test('what is old is removed or fades at the start, and nothing else', async (t) => {
  const results = await temporaryFolder(t, 'results')
  for (const [name, days] of [
    ['session-91.ndjson', 31],
    ['session-92.ndjson', 29],
    ['session-93.ndjson.gz', 400],
    ['session-.ndjson', 400],
    ['my-session-94.ndjson', 400],
  ] as const) {
    const file = join(results, name)
    writeFileSync(file, '{}\n')
    const at = Date.now() / 1_000 - days * 24 * 3_600
    utimesSync(file, at, at)
  }
  mkdirSync(join(results, 'session-95.ndjson'))
  const inventory = await inventoryFile(t, {
    services: [{ name: 's', checks: [], operations: OPERATIONS }],
  })
  const env = { ...(await postgres.env(t)), OPS_RESULTS_DIR: results, OPS_INVENTORY: inventory }
  const [old, half, quiet, recent] = [{ days: 92 }, { days: 93 }, { days: 31 }, { days: 29 }]
  const young = { days: 89, chain: half }
  const ids = await addSessions(env, [
    { days: 120, lines: 1_200 },
    old,
    { days: 91, chain: old },
    half,
    young,
    quiet,
    recent,
  ])

  const ops = await startOps(t, postgres, env)
  const { server } = ops
  t.match(await pruned(server), {
    lines: 1_206 - 1,
    sessions: 3,
    events: 4,
    actions: 1,
    alerts: 4,
    files: 1,
  })
  const memories = await until(async () => {
    const found = await memoriesOf(ops, '?category=c')
    return found.some(({ active }) => !active) && found
  }, 'memories to fade')
  const faded = memories.map(({ observation, confidence, active }) => {
    return `${observation} ${confidence} ${active}`
  })
  t.same(faded.toSorted(), [
    'fresh 0.7 true',
    'gone 0 false',
    'once 0.6 true',
    'rests 0.2 false',
    'rounds 0.3 true',
    'stays 0.3 true',
    'twice 0.5 true',
  ])
  await server.stop()
  t.same(await leftIn(env), {
    lines: [ids.get(recent)],
    sessions: [half, young, quiet, recent].map((session) => ids.get(session)),
    events: [29, 31, 89],
    actions: [29, 31, 89, 91, 92, 93],
    alerts: [29, 31, 89],
  })
  t.same(
    readdirSync(results).filter(
      (name) => !existsSync(join(results, name)) || /^s.*9[1-5]/.test(name),
    ),
    ['session-92.ndjson', 'session-93.ndjson.gz', 'session-95.ndjson'],
  )
})

await t.test(
  'the history of checks is kept as long as pages show it; decided operations as sessions',
  async (t) => {
    const env = await postgres.env(t)
    await postgres.query(
      env,
      `with kept as (
       insert into ops.checks (service, name, type, every_s, version, next_at, since, removed_at)
       select 's', n, 'load', 60, 'v', now(), now(), now() - n * interval '1 day'
         from unnest(array[99, 101]) as n
       returning id, name
     ), check_of as (
       select id from kept where name = '99'
     ), results as (
       insert into ops.check_results select id, now() - n * interval '1 hour', 'ok', 1, 'x'
         from check_of, generate_series(1, 4000) as n
     ), counts as (
       insert into ops.check_counts select id, span, now() - n * interval '1 day', 1, 0, 0, 0, 1, 1, 1
         from check_of, (values ('hour'), ('day')) as s(span), generate_series(1, 1200) as n
     ), periods as (
       insert into ops.check_periods (check_id, state, began_at, ended_at, message)
       select id, 'ok', now() - (n + 1) * interval '1 day', case when n > 0 then now() - n * interval '1 day' end, 'x'
         from check_of, unnest(array[0, 700, 900]) as n
     ), approvals as (
       insert into ops.approvals (service, operation, argv, reason, status, created_at, expires_at)
       select 's', 'o', '[]', '', 'rejected', now() - n * interval '1 day', now() - n * interval '1 day'
         from unnest(array[89, 91]) as n
     )
     insert into ops.mutes (service, starts_at, ends_at, reason, author)
     select 's', now() - 200 * interval '1 day', now() - n * interval '1 day', 'x', 'command'
       from unnest(array[99, 101]) as n`,
    )
    const { server } = await startOps(t, postgres, env)
    t.match(await pruned(server), { approvals: 1, checks: 3_953 + 1_101 + 401 + 1 + 1 + 1 })
    const left = await postgres.query(
      env,
      `select (select count(*)::integer from ops.check_results) as results,
            (select count(*)::integer from ops.check_counts where span = 'hour') as hours,
            (select count(*)::integer from ops.check_counts where span = 'day') as days,
            (select count(*)::integer from ops.check_periods) as periods,
            (select count(*)::integer from ops.checks) as checks,
            (select count(*)::integer from ops.mutes) as mutes,
            (select count(*)::integer from ops.approvals) as approvals`,
    )
    t.same(left, [
      { results: 47, hours: 99, days: 799, periods: 2, checks: 1, mutes: 1, approvals: 1 },
    ])
  },
)

t.test('0 keeps sessions for ever; output has its own time; what runs stays', async (t) => {
  const env = {
    ...(await postgres.env(t)),
    OPS_RETENTION_DAYS: '0',
    OPS_LINES_RETENTION_DAYS: '2',
  }
  const chain = { days: 3 }
  const ids = await addSessions(env, [{ days: 4_000 }, chain, { days: 3, chain }])
  const [old, parent, child] = [...ids.values()]
  await postgres.query(
    env,
    `update ops.sessions
        set status = 'running', ended_at = null, holder = 'test', heartbeat_at = now() + interval '1 hour'
      where id = $1`,
    [child ?? null],
  )
  const { server } = await startOps(t, postgres, env)
  t.match(await pruned(server), { lines: 1, sessions: 0, events: 0 })
  const left = await leftIn(env)
  t.match(left, { lines: [parent, child], sessions: [old, parent, child] })
  t.match(left, { events: [3, 3, 4_000], actions: [3, 3, 4_000], alerts: [3, 3, 4_000] })
  await server.stop()

  const kept = { ...env, OPS_RETENTION_DAYS: '1', OPS_LINES_RETENTION_DAYS: '0' }
  const later = await startOps(t, postgres, kept)
  t.match(await pruned(later.server), { lines: 0, sessions: 1 }, 'and output goes with it')
  t.match(await leftIn(env), { lines: [parent, child], sessions: [parent, child] })
})
