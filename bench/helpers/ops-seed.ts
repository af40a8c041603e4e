import { run } from '../../test/helpers/postgres.ts'

/** The checks of the inventory: 100 services with ten each. */
const SERVICES = 100
const CHECKS = 1_000
/** As many as are kept: memories of people, and lines of who changed what. */
const MEMORIES = 10_000
const CHANGES = 100_000
/** The texts of the first alert. */
const TEXTS = 1_000
/** The session with the longest output, and how many lines that has. */
export const LONG_SESSION = 400
const LINES = 20_000

/**
 * Statements that fill the tables of ops with `count` rows each. A session begins every half
 * minute, so that 1,000,000 of them are those of a year; one in six goes on with another one.
 * Events, alerts, approvals and operations come as often. Notices and results of checks are those
 * of the days that are kept.
 */
function seed(count: number): readonly string[] {
  return [
    `insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, exit_code, cost_usd, num_turns,
                               duration_ms, prompt_text, summary, parent_session_id, chain_id, alert_id, holder, machine,
                               heartbeat_at)
     select 1 + (n % 6 = 0)::int, 'none',
            case when n % 6 = 5 then 'escalated' when n % 97 = 0 then 'failed' else 'completed' end,
            case when n % 6 = 0 then 'escalation' when n % 50 = 1 then 'alert' else 'scheduled' end, t, t + interval '25 s',
            0, 0.01, n % 20, 25000, repeat('Look. ', 20), 'All is well.', case when n % 6 = 0 then n - 1 end,
            case when n % 6 = 0 then n - 1 end, case when n % 50 = 1 then n end, 'h', 'm', now()
       from generate_series(1, ${count}) n
      cross join lateral (select now() - (${count} - n) * interval '30 s' - interval '1 min' as t) v`,
    `insert into ops.session_lines (session_id, seq, at, kind, text, call)
     select ${LONG_SESSION}, n, now(), case when n % 4 = 0 then 'tool' else 'text' end, 'line ' || repeat('x', 80),
            case when n % 4 = 0 then n / 4 end
       from generate_series(1, ${LINES}) n`,
    `insert into ops.events (session_id, level, service, message, created_at, waits)
     select n, case n % 100 when 0 then 'critical' when 1 then 'warning' else 'info' end, 'service ' || n % ${SERVICES},
            'seen ' || n, now() - (${count} - n) * interval '30 s', n % 100 = 0
       from generate_series(1, ${count}) n`,
    `insert into ops.session_counts
     select (started_at at time zone 'UTC')::date, count(*), sum(cost_usd) from ops.sessions group by 1`,
    `insert into ops.event_counts
     select (created_at at time zone 'UTC')::date, count(*) from ops.events group by 1`,
    `insert into ops.memories (service, category, observation, confidence, active, created_at, updated_at, fades_at,
                               session_id, tier)
     select 'service ' || n % ${SERVICES}, 'timing', 'slow ' || n, n % 100 / 100.0, n % 1000 = 0, now(), now(),
            now() + interval '30 days', 1 + n % ${count}, 1
       from generate_series(1, ${MEMORIES}) n`,
    `insert into ops.actions (session_id, service, action_type, operation, at, outcome)
     select n, 'service ' || n % ${SERVICES}, 'restart', 'restart', now() - (${count} - n) * interval '30 s', 'exit code 0'
       from generate_series(1, ${count}) n`,
    `insert into ops.approvals (session_id, service, operation, argv, reason, status, created_at, expires_at, decided_at,
                                decided_by, outcome)
     select n, 'service ' || n % ${SERVICES}, 'restart ' || n, '["true"]', 'It hangs.',
            case when n > ${count - 5} then 'pending' else 'done' end, t, t + interval '30 min',
            case when n <= ${count - 5} then t end, case when n <= ${count - 5} then 'operator' end, 'exit code 0'
       from generate_series(1, ${count}) n
      cross join lateral (select now() - (${count} - n) * interval '30 s' as t) v`,
    `insert into ops.alerts (fingerprint, source, service, content, first_seen, last_seen, state, outcome)
     select 'print-' || n, 'monitor', 'service ' || n % ${SERVICES}, 'text 1', t, t,
            case when n % 1000 = 0 then 'firing' else 'resolved' end,
            case when n % 1000 = 0 then 'acknowledged' else 'triggered' end
       from generate_series(1, ${count}) n
      cross join lateral (select now() - (${count} - n) * interval '30 s' as t) v`,
    `insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
     select id, 'text 1', 'Disk is full', repeat('{"a": 1}', 20), last_seen, last_seen from ops.alerts`,
    `insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
     select 1, 'text ' || n, 'Disk is full', repeat('{"a": 1}', 200), now(), now() - n * interval '1 s'
       from generate_series(2, ${TEXTS}) n`,
    `insert into notices.notices (service, level, message, site, path, session_id, created_at, key, ended_at)
     select 'service ' || n % ${SERVICES}, 'critical', 'disk is full ' || n, 'ops', '/events', n,
            now() - (${count} - n) * interval '0.5 s', case when n % 10 = 0 then 'check ' || n end,
            case when n % 10 = 0 and n <= ${count - 200} then now() end
       from generate_series(1, ${count}) n`,
    `insert into notices.targets (name, kind, host, address, created_at)
     select name, 'webhook', 'example.com', '', now() from unnest(array['chat', 'pager']) name`,
    `insert into notices.sends (notice_id, target, attempts, next_at, sent_at)
     select n.id, t.name, 1, n.created_at, n.created_at from notices.notices n cross join notices.targets t`,
    `insert into ops.checks (service, name, type, every_s, version, next_at, since, state, message, checked_at)
     select 'service ' || n % ${SERVICES}, 'check ' || n, 'load', 60, '', now() + interval '1 min', now(), 'ok',
            'load of 1', now()
       from generate_series(1, ${CHECKS}) n`,
    `insert into ops.check_results (check_id, at, state, ms, message)
     select c.id, now() - n * interval '3 min', 'ok', 12, '' from ops.checks c, generate_series(1, ${count / CHECKS}) n`,
    `insert into ops.check_counts
     select c.id, 'hour', date_trunc('hour', now()) - n * interval '1 hour', 60, n % 7, 0, 0, 1, 600, 90
       from ops.checks c, generate_series(0, 2399) n`,
    `insert into ops.check_counts
     select c.id, 'day', date_trunc('day', now(), 'UTC') - n * interval '1 day', 1440, n % 7, 0, 0, 1, 14400, 90
       from ops.checks c, generate_series(0, 365) n`,
    `insert into ops.check_periods (check_id, state, began_at, ended_at, message)
     select c.id, case n % 2 when 0 then 'ok' else 'fail' end, now() - (n + 1) * interval '12 hours',
            case when n > 0 then now() - n * interval '12 hours' end, 'load of 1'
       from ops.checks c, generate_series(0, ${count / CHECKS - 1}) n`,
    `insert into audit.changes (at, actor, action, service, subject)
     select now() - (${CHANGES} - n) * interval '30 s', 'operator', 'provider add', 'ops', 'generic:' || n
       from generate_series(1, ${CHANGES}) n`,
    'vacuum analyze',
  ]
}

/** Fills the tables of ops in a migrated database with `count` rows each. */
export async function seedOps(url: string, count: number): Promise<void> {
  for (const statement of seed(count)) await run(url, statement)
}

/** The inventory with the checks of the seed: none of them looks while pages are read. */
export function seededInventory() {
  const names = Array.from({ length: CHECKS }, (_, at) => at + 1)
  const services = Array.from({ length: SERVICES }, (_, service) => ({
    name: `service ${service}`,
    checks: names
      .filter((n) => n % SERVICES === service)
      .map((n) => ({ type: 'load', max_per_cpu: 1_000, every: '24h', name: `check ${n}` })),
  }))
  return { services }
}
