import type { Backend, Row } from './backends.ts'
import type { Env } from './program.ts'

/** How much to make. */
export type SeedSize = {
  readonly events: number
  readonly links: number
  readonly sessions: number
}

/** A day of sessions, one each half an hour, of which every sixth escalates to the next one. */
export const DAY_OF_SESSIONS = 48

/**
 * Statements that fill every table of a migrated database: payloads of about 2 KB, texts and numbers that
 * suffer where they are not carried as they are, and ids that go on above a gap.
 */
export function seedStatements({ events, links, sessions }: SeedSize): string {
  return `
insert into hooks.events (provider, event_type, trust, body_check, external_id,
                          content_type, source_ip, headers, payload, received_at)
select case i % 3 when 0 then 'payments' when 1 then 'code_host' else 'generic:ci' end,
       case when i % 7 > 0 then 'type.' || i % 20 end, 1 + i % 4, i, 'delivery-' || i, 'application/json',
       '192.0.2.' || i % 250, jsonb_build_array(jsonb_build_array('User-Agent', 'seed/' || i))::text,
       convert_to('{"id": ' || i || ', "text": "' || repeat(md5(i::text), 62) || '"}', 'UTF8'),
       timestamptz '2026-05-04' + i * interval '0.75 s'
  from generate_series(1, ${events}) i;
insert into hooks.events (provider, trust, external_id, headers, payload, received_at)
select 'generic:odd', 2, null, headers, payload, now()
  from (values ('[]', ''::bytea),
               ('[["a", ""], ["b", "\\\\ \\" \\n \\u2028 😀"]]', decode(repeat('00ff5c0a0d', 50), 'hex')),
               (E'[["tab", "\\\\t"], ["N", "-0.0"], ["n", "1e-30"]]', convert_to(E'a\\nb\\\\c"d''e', 'UTF8'))) v (headers, payload);
insert into hooks.repeats select id, 1 + id % 3 from hooks.events where id % 5 = 0;
insert into hooks.clock_steps select id, id from hooks.events where id % 1000 = 0;
insert into hooks.event_types select distinct provider, event_type from hooks.events where event_type is not null;
delete from hooks.events where id > (select max(id) from hooks.events) - 1;
insert into hooks.activity select 'payments', timestamptz '2026-05-04' + i * interval '1 min', i from generate_series(1, 1000) i;
insert into hooks.rejection_minutes select 'payments', timestamptz '2026-05-04' + i * interval '1 min', i, i / 2 from generate_series(1, 50) i;
insert into hooks.rejections (at, provider, status, source, reason)
select now(), 'payments', 401, '192.0.2.0/24', E'it''s "odd" \\\\ \\n ü' from generate_series(1, 100);
insert into hooks.rejection_totals values ('payments', 401, 5000000000, now());
insert into hooks.endpoints values ('agent', sha256('a'), true, now(), null);
insert into hooks.searches (name, query) values ('ü "Globex"', 'q=customer%3AGlobex&when=yesterday&zone=Europe%2FBerlin');
insert into hooks.attempts (event_id, kind, target, outcome, status, ms, at)
select id, 'replay', 'https://example.com/', 'delivered', 200, 12, now() from hooks.events order by id limit 300;
insert into hooks.destinations (name, url, providers, event_types, members, ordered, rate, timeout_s, position, disabled_at, disabled_by, mean_ms)
values ('erp', 'https://example.com/in', '["payments"]', '["*.ü"]', '[["a.0", "\\"\\n", "a"]]', true, 50, 10, ${events}, now(), 'operator', 0.1);
insert into hooks.destination_deliveries
select 'erp', id, 1, case when id % 2 = 0 then now() end, null from hooks.events order by id limit 20;
insert into hooks.destinations (name, kind, url, ordered, position, disabled_at, disabled_by)
values ('replay:1f', 'replay', 'https://example.com/in', false, 9, now(), 'job');
insert into hooks.replay_jobs
values ('replay:1f', 'planning', '{"text": "\\u00fc \\" ''"}', 9, 4, 2, sha256('a'), null);
insert into hooks.forwarders values ('laptop', ${events}, 3, now());
insert into hooks.providers (name, family, trust_mode, enabled, token_hash)
values ('generic:odd', 'webhook', 'token', true, sha256('odd'));
update hooks.providers
   set methods = '["GET", "PUT"]', answer = '{"status": 503, "type": "text/plain", "body": "\u00fc \\" ''\\n"}'
 where name = 'generic:odd';
insert into hooks.providers (name, family, trust_mode, scheme, scheme_row, enabled)
values ('generic:own', 'webhook', 'signed', 'hmac', '{"prefix": "v1=", "signature": ["x-ü"], "timestamp": []}', true);
insert into hooks.recoveries values ('github:octo/app', now(), now(), 'ü', '[{"left": 1, "asked": 0, "failed": 1, "provider": "code_host", "redelivered": 0}]');
insert into hooks.secret_key (mark) values ('\\x0102030405');
insert into hooks.installation (name) values ('f00d')
  on conflict (only_row) do update set name = excluded.name;
update hooks.settings set retention_max_age_days = 0, retention_max_rows = 0;

insert into audit.changes (actor, action, service, subject)
select 'user' || i || '@example.com', 'provider add', 'hooks', 'generic:ü' || i from generate_series(1, 100) i;

insert into links.users (email, display_name, role, created_at, disabled_at)
select 'user' || i || '@example.com', 'Üser "' || i || '"', case i when 1 then 'admin' else 'user' end, now(),
       case i when 2 then now() end
  from generate_series(1, 50) i;
insert into links.links (slug, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                         created_at, updated_at)
select 'link-' || i, 'https://example.com/' || i, 'Title ' || i, '', case when i % 4 = 0 then 'private' else 'public' end,
       i % 2 = 0, case i % 3 when 0 then now() end, nullif(i % 5, 0), i % 7 = 0, now(), now()
  from generate_series(1, ${links}) i;
insert into links.names select slug, id from links.links union all select 'alias-' || slug, id from links.links;
insert into links.link_owners
select u.id, l.slug, true
  from links.links l join links.users u on u.email = 'user' || 1 + length(l.url) % 50 || '@example.com';
insert into links.link_shares
select u.id, l.slug, 'user1@example.com', now()
  from links.links l join links.users u on u.email = 'user50@example.com' where l.slug like '%0';
insert into links.link_tags select slug, 'tag' || length(slug), visibility = 'public' from links.links;
insert into links.hidden_tags
select o.user_id, t.tag, t.slug from links.link_tags t join links.link_owners o using (slug) where not t.is_public;
insert into links.health (slug, url, host, due_at, state, since, checked_at, status, problem, missing_since)
select slug, url, 'example.com', now(), 'broken', now(), now(), 404, 'ü " ''', now() from links.links;
insert into links.check_hosts values ('example.com', now());
insert into links.missing_slugs select date '2026-05-03', 'missing-' || i, i from generate_series(1, 9) i;
insert into links.link_words select slug, 'word' || length(slug), visibility = 'public' from links.links;
insert into links.link_texts
select slug, slug || ' "ü" \\\\ ', array['a "b"', '{'], array[links.everybody()] from links.links;
insert into links.tags select tag, count(*), count(*) filter (where is_public) from links.link_tags group by tag;
insert into links.changes (link_id, at, actor, action, detail)
select id, now(), 'user1@example.com', 'created', jsonb_build_object('url', jsonb_build_array(null, url)) from links.links;
insert into links.deleted_links (id, slug, deleted_at, deleted_by, link, aliases, shares, tags, changes, clicks, sources)
select gen_random_uuid(), 'gone-' || i, now(), 'user1@example.com', '{"title": "\\u00fc \\" ''"}', '[]', '[]', '["t"]', '[]', '[]', '[]'
  from generate_series(1, 9) i;
insert into links.deleted_owners
select u.id, d.deletion, true from links.deleted_links d join links.users u on u.email = 'user1@example.com';
insert into links.tokens (user_id, name, scope, token_hash, created_at)
select id, 'laptop', 'read', sha256(convert_to(email, 'UTF8')), now() from links.users;
insert into links.clicks
select l.id, d, 'human', 7 from links.links l cross join (values (date '2026-05-03'), (date '2026-05-04')) v (d);
insert into links.click_sources
select id, date '2026-05-04', '{"wiki.example.com": 7, "other": 5000000000}', '{"Firefox": 5000000007}' from links.links;
insert into hooks.rejection_writers values (gen_random_uuid(), 9, now());
insert into links.click_writers values (gen_random_uuid(), 9, now());

insert into ops.sessions (tier, model, status, trigger, started_at, ended_at, exit_code, cost_usd, num_turns, duration_ms,
                          prompt_text, summary, parent_session_id, chain_id, holder, machine, heartbeat_at)
select 1 + (i % 6 = 0)::int, 'none', case i % 6 when 5 then 'escalated' else 'completed' end,
       case i % 6 when 0 then 'escalation' else 'scheduled' end, timestamptz '2026-05-04' + i * interval '30 min',
       timestamptz '2026-05-04' + i * interval '31 min', 0, 0.1 * i, i, 60000, repeat('Look. ', 200), 'All "fine"',
       case i % 6 when 0 then i - 1 end, case i % 6 when 0 then i - 1 end, 'h', 'm', now()
  from generate_series(1, ${sessions}) i;
insert into ops.session_lines
select id, seq, started_at, 'text', 'line ' || seq || E' \\t"quoted" \\\\ ' || repeat('x', 100)
  from ops.sessions cross join generate_series(1, 200) seq;
insert into ops.events (session_id, level, service, message, created_at)
select id, 'critical', 'web', E'down\\nagain', started_at from ops.sessions cross join generate_series(1, 5);
insert into ops.assistants values ('desk', sha256('b'), true, now(), null);
insert into ops.memories (service, category, observation, confidence, active, created_at, updated_at, fades_at, session_id, tier)
select 'web', 'timing', 'slow ' || id, 0.1 + 0.2, true, now(), now(), now(), id, 1 from ops.sessions;
insert into ops.actions (session_id, service, action_type, operation, at, outcome)
select id, 'web', 'restart', 'restart', started_at, null from ops.sessions limit 3;
insert into ops.approvals (session_id, service, operation, argv, reason, status, created_at, expires_at, decided_at, decided_by, action_id)
select session_id, service, operation || id, '["sh", "-c", "echo \\u00fc \\" ''"]', 'It hangs.', 'rejected', at, at, at, 'operator', id from ops.actions;
insert into ops.alerts (fingerprint, source, service, labels, content, first_seen, last_seen, outcome)
select 'print-' || id, null, 'web', '{"alertname": "Slow \\"page\\""}', 'one', now(), now(), 'triggered' from ops.sessions;
update ops.sessions s set alert_id = a.id from ops.alerts a where a.fingerprint = 'print-' || s.id;
insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
select id, 'one', 'Alert', repeat('{"a": 1}', 100), now(), now() from ops.alerts;
insert into ops.alert_notes (alert_id, at, author, text)
select id, now(), 'user1@example.com', E'It was the "disk" \\\\ ü\\nof web' from ops.alerts;
insert into ops.brief_costs values (date '2026-05-04', 0.1 + 0.2);
insert into ops.event_counts values (date '2026-05-04', 7);
insert into ops.session_counts values (date '2026-05-04', 48, 0.1 + 0.2);
insert into notices.notices (service, level, message, site, path, session_id, created_at)
select service, level, message, 'ops', '/events', session_id, now() from ops.events order by id limit 20;
insert into notices.sends (notice_id, target, next_at) select id, 'OPS_NOTIFY_URL', now() from notices.notices;
insert into notices.targets (name, kind, host, address, services, levels, created_at)
values ('chat', 'slack', 'hooks.slack.com', '\\x0102', '["web"]', null, now());
insert into notices.failing_targets values ('OPS_NOTIFY_URL', now());
insert into notices.paces values ('OPS_NOTIFY_URL', 'beginning', now(), 1, null);
insert into ops.checks (service, name, type, every_s, version, next_at, state, since, message, ms, checked_at)
values ('web', 'http', 'http', 60, 'v', now(), 'fail', now(), 'answered 503', 12, now());
insert into ops.investigations select id, 1, now(), 1 from ops.checks;
insert into ops.check_results select id, now(), 'fail', 12, 'answered 503' from ops.checks;
insert into ops.check_counts select id, 'hour', date_trunc('hour', now()), 2, 1, 0, 1, 12, 12, 12 from ops.checks;
insert into ops.check_periods (check_id, state, began_at, message) select id, 'fail', now(), 'answered 503' from ops.checks;
insert into ops.mutes (service, check_name, starts_at, ends_at, reason, author)
values ('web', null, now(), now() + interval '1 hour', 'moving', 'command');
insert into ops.silences (match, starts_at, ends_at, reason, author)
values ('{"service": "web"}', now(), now() + interval '1 hour', 'moving', 'command');
update ops.settings set interval = 60, scheduled_at = now();`
}

const TABLES = `
select string_agg(format('select %L as name, count(*)::int as rows, sum((''x'' || left(md5(t::text), 15))::bit(60)::bigint)::text as sum
                            from %I.%I t', n.nspname || '.' || c.relname, n.nspname, c.relname),
                  ' union all ') || ' order by 1' as text
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind in ('r', 'v')`

const SEQUENCES = `
select c.oid::regclass::text as name, nextval(c.oid)::text as next
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('audit', 'hooks', 'links', 'notices', 'ops') and c.relkind = 'S'
 order by 1`

/** What each table and view holds: how many rows, and a sum over all their columns, which knows no order. */
export async function contentsOf(backend: Backend, env: Env): Promise<readonly Row[]> {
  const [made] = await backend.query(env, TABLES)
  const text = `set timezone = 'UTC'; set bytea_output = 'hex'; set extra_float_digits = 1; ${String(made?.['text'])}`
  const results: readonly unknown[] = await backend.query(env, text)
  const rows: unknown = results.at(-1)
  if (!Array.isArray(rows)) throw new Error('the statements gave no rows at their end')
  return rows as readonly Row[]
}

/** The next id of each table that has one, which is used up by that. */
export function drawnIds(backend: Backend, env: Env): Promise<readonly Row[]> {
  return backend.query(env, SEQUENCES)
}
