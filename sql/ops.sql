-- name: addEvent :one
-- With $6 a notice of it is due at once.
with added as (
  insert into ops.events (session_id, level, service, message, created_at)
  values ($1, $2, $3, $4, $5)
  returning id, session_id, level, service, message, created_at
), due as (
  insert into ops.notices (event_id, created_at, next_at)
  select id, created_at, created_at
    from added
   where $6::boolean
)
select id, session_id, level, service, message, created_at
  from added;

-- name: addEventOnce :exec
-- An event of session $1 that is not critical, unless it has one with this message: the answer to that may be lost.
insert into ops.events (session_id, level, service, message, created_at)
select $1, $2, $3, $4, $5
 where not exists (select from ops.events where session_id = $1 and message = $4);

-- name: listEvents :many
-- Newest first, from row $1 on; $3 and $4 filter by level and service, $5 by session.
select id, session_id, level, service, message, created_at
  from ops.events
 where ($3::text is null or level = $3)
   and ($4::text is null or service = $4)
   and ($5::bigint is null or session_id = $5)
 order by created_at desc, id desc
offset $1
 limit $2;

-- name: addMemory :one
insert into ops.memories (service, category, observation, confidence, active, created_at, updated_at, fades_at,
                          session_id, tier)
values ($1, $2, $3, $4, $5, $6::timestamptz, $6, $6::timestamptz + interval '37 days', $7, $8)
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier;

-- name: strengthenMemory :optional
-- The same observation once more: its confidence rises by a tenth. One that has faded becomes active from 0.3 on;
-- one that an operator has put to rest stays so. Empty when it is new.
update ops.memories
   set confidence = least(1, round((confidence + 0.1)::numeric, 3)),
       active = active or (faded and round((confidence + 0.1)::numeric, 3) >= 0.3),
       faded = faded and round((confidence + 0.1)::numeric, 3) < 0.3,
       updated_at = $4::timestamptz,
       fades_at = $4::timestamptz + interval '37 days'
 where id = (select id
               from ops.memories
              where service is not distinct from $1
                and category = $2
                and observation = $3
              order by active desc, id
              limit 1)
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier;

-- name: fadeMemories :exec
-- Memories that were not renewed for 30 days lose a tenth of confidence for each week after; under 0.3 they rest.
with fading as (
  select id, (floor(extract(epoch from $1::timestamptz - fades_at) / 604800) + 1)::integer as weeks
    from ops.memories
   where active
     and fades_at <= $1::timestamptz
)
update ops.memories m
   set confidence = greatest(0, round((m.confidence - 0.1 * f.weeks)::numeric, 3)),
       active = round((m.confidence - 0.1 * f.weeks)::numeric, 3) >= 0.3,
       faded = round((m.confidence - 0.1 * f.weeks)::numeric, 3) < 0.3,
       fades_at = m.fades_at + f.weeks * interval '7 days'
  from fading f
 where m.id = f.id;

-- name: updateMemory :optional
-- One that has faded and is not made active still counts as faded under 0.3: its text alone was changed. In other
-- words it is no check's time any more, and the probe leaves it alone. Empty when there is no such memory.
update ops.memories
   set observation = $2, confidence = $3::float8, active = $4::boolean,
       check_name = case when observation = $2 then check_name end,
       faded = faded and not $4::boolean and $3::float8 < 0.3, updated_at = $5::timestamptz,
       fades_at = $5::timestamptz + interval '37 days'
 where id = $1
returning id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier;

-- name: removeMemory :optional
-- Empty when there is no such memory.
delete from ops.memories
 where id = $1
returning id;

-- name: findMemory :optional
-- Empty when there is no such memory.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier
  from ops.memories
 where id = $1;

-- name: listMemories :many
-- Surest first, from row $1 on; $3 and $4 filter by service and category.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier
  from ops.memories
 where ($3::text is null or service = $3)
   and ($4::text is null or category = $4)
 order by confidence desc, id
offset $1
 limit $2;

-- name: listActiveMemories :many
-- What sessions are told: what operators wrote comes first, then what sessions noted, each surest first; $1 and $2
-- filter by service and category.
select id, service, category, observation, confidence, active, created_at, updated_at, session_id, tier
  from ops.memories
 where active
   and ($1::text is null or service = $1)
   and ($2::text is null or category = $2)
 order by tier > 0, confidence desc, id
 limit $3;

-- name: trimMemories :exec
-- Keeps memory $1 and the best $2 others that agents noted; what operators wrote and times of checks don't count.
delete from ops.memories
 where id in (select id
                from ops.memories
               where tier > 0
                 and check_name is null
                 and id <> $1
               order by active desc, confidence desc, updated_at desc, id desc
              offset $2);

-- name: noteCheckTime :exec
-- What the probe says at $5 of the usual time of check $2 of service $1. The same again makes it a tenth surer. Another
-- time makes it a tenth less sure, and takes its place where it would be less sure than a new one ($4).
insert into ops.memories as m (service, check_name, category, observation, confidence, active, created_at, updated_at,
                               fades_at, session_id, tier)
values ($1, $2, 'timing', $3, $4, true, $5::timestamptz, $5, $5::timestamptz + interval '37 days', $6, $7)
on conflict (service, check_name) do update
   set observation = case when round((m.confidence - 0.1)::numeric, 3) >= excluded.confidence then m.observation
                          else excluded.observation end,
       confidence = case when m.observation = excluded.observation then least(1, round((m.confidence + 0.1)::numeric, 3))
                         else greatest(excluded.confidence, round((m.confidence - 0.1)::numeric, 3)) end,
       active = m.active or (m.faded and (m.observation <> excluded.observation or m.confidence >= 0.2)),
       faded = m.faded and m.observation = excluded.observation and m.confidence < 0.2,
       updated_at = excluded.updated_at,
       fades_at = excluded.fades_at;

-- name: listCooldowns :many
-- What was done since $1 by service and kind of action, newest first.
select service, action_type, count(*) as count, max(at) as last_action
  from ops.actions
 where at >= $1
 group by service, action_type
 order by last_action desc, service, action_type
 limit $2;

-- name: takeActionTurn :exec
-- Operations are admitted one at a time, so that no two count the same actions.
select pg_advisory_xact_lock(7203003);

-- name: countActions :one
-- How often action $2 was done to service $1 between $3 and $4.
select count(*) as count
  from ops.actions
 where service = $1
   and action_type = $2
   and at between $3 and $4;

-- name: addAction :one
insert into ops.actions (session_id, service, action_type, operation, at)
values ($1, $2, $3, $4, $5)
returning id;

-- name: finishAction :exec
update ops.actions
   set outcome = $2
 where id = $1;

-- name: listOpenActions :many
-- The operations of session $1 whose end is not noted, $2 at most.
select id
  from ops.actions
 where session_id = $1
   and outcome is null
 order by id
 limit $2;

-- name: endActions :exec
-- Notes $2 of the operations of session $1 whose end is not noted.
update ops.actions
   set outcome = $2
 where session_id = $1
   and outcome is null;

-- name: readSettings :one
select interval, tier1_model, tier2_model, tier3_model, dry_run
  from ops.settings;

-- name: writeSettings :exec
-- Saves each value that is given (null keeps what is saved), and tells every instance.
with saved as (
  update ops.settings
     set interval = coalesce($1, interval), tier1_model = coalesce($2, tier1_model),
         tier2_model = coalesce($3, tier2_model), tier3_model = coalesce($4, tier3_model),
         dry_run = coalesce($5, dry_run)
)
select pg_notify('ops_settings', '');

-- name: saveCheckStates :many
-- Notes how the checks of the JSON array $1 went at $2; the rows are how those went before that are not new.
with given as (
  select service, name, ok
    from jsonb_to_recordset($1::jsonb) as state(service text, name text, ok boolean)
), before as materialized (
  select c.service, c.name, c.ok, c.told_event
    from ops.check_states c
    join given g on g.service = c.service and g.name = c.name
), saved as (
  insert into ops.check_states (service, name, ok, since)
  select service, name, ok, $2
    from given
   order by service, name
  on conflict (service, name) do update
     set ok = excluded.ok,
         since = case when ops.check_states.ok = excluded.ok then ops.check_states.since else excluded.since end
)
select service, name, ok, told_event
  from before;

-- name: noteTold :exec
-- A notice tells of the event $3 that the check fails; null: its end is told.
update ops.check_states
   set told_event = $3
 where service = $1
   and name = $2;

-- name: saveAlert :one
-- A delivery at $6 of the alert $1, which the process $9 on $10 reads. Each text of the alert is kept: $3 says which
-- one it is. What came of an earlier delivery gives way. The row is the alert, and the number of this delivery.
with saved as (
  insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome, tier, holder, machine,
                          reading_since)
  values ($1, $2, $3, $6, $6, $7, $8, $9, $10, $6)
  on conflict on constraint alerts_fingerprint do update
     set source = excluded.source, content = excluded.content, count = ops.alerts.count + 1,
         last_seen = greatest(ops.alerts.last_seen, excluded.last_seen), outcome = excluded.outcome, problem = null,
         tier = excluded.tier, holder = excluded.holder, machine = excluded.machine,
         reading_since = excluded.reading_since
  returning id, count
), kept as (
  insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
  select id, $3, $4, $5, $6, $6
    from saved
  on conflict (alert_id, content) do update
     set title = excluded.title, payload = excluded.payload, count = ops.alert_texts.count + 1,
         last_seen = greatest(ops.alert_texts.last_seen, excluded.last_seen)
)
select id, count
  from saved;

-- name: noteAlert :exec
-- What came of the delivery $2 of the alert $1: its outcome, the problem if there was one, and the session that it
-- started. A newer delivery has an outcome of its own.
update ops.alerts
   set outcome = case when count = $2 then $3 else outcome end,
       problem = case when count = $2 then $4 else problem end,
       session_id = coalesce($5, session_id)
 where id = $1;

-- name: listUnread :many
-- Alerts whose newest delivery is being read, the oldest first, $1 at most.
select id, holder, machine, reading_since
  from ops.alerts
 where outcome = 'received'
 order by id
 limit $1;

-- name: adoptAlert :optional
-- The newest delivery of the alert $1, read from $3 on by the process $4 on $5. Empty unless it is being read since $2.
update ops.alerts a
   set reading_since = $3, holder = $4, machine = $5
  from ops.alert_texts t
 where a.id = $1
   and a.reading_since = $2
   and a.outcome = 'received'
   and t.alert_id = a.id
   and t.content = a.content
returning a.id, a.count, a.tier, t.payload;

-- name: listAlerts :many
-- The one that was delivered last comes first, from row $1 on; of each delivery the first $3 characters.
select a.id, a.fingerprint, a.source, t.title, left(t.payload, $3) as payload, a.count, a.first_seen, a.last_seen,
       a.outcome, a.problem, a.session_id,
       (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 order by a.last_seen desc, a.id desc
offset $1
 limit $2;

-- name: findAlert :optional
-- Empty when there is no such alert.
select a.id, a.fingerprint, a.source, t.title, t.payload, a.count, a.first_seen, a.last_seen, a.outcome, a.problem,
       a.session_id, (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where a.id = $1;

-- name: listAlertTexts :many
-- The texts of the alert $1, the one that came last first, from row $2 on; of each the first $4 characters.
select title, left(payload, $4) as payload, count, first_seen, last_seen
  from ops.alert_texts
 where alert_id = $1
 order by last_seen desc, content
offset $2
 limit $3;

-- name: takeBrief :optional
-- The turn to have a brief written, for the process $1 on $2 from $3 until $4. Empty while another one has it. An end
-- that is over a minute away was written by a clock that was set back since. A turn that the process has is one whose
-- answer was lost.
update ops.settings
   set brief_holder = $1, brief_machine = $2, brief_until = $4
 where brief_holder is null
    or (brief_holder = $1 and brief_machine = $2)
    or brief_until <= $3::timestamptz
    or brief_until > $3::timestamptz + interval '1 minute'
returning brief_until;

-- name: freeBrief :exec
-- The turn of the process $1 on $2 is over.
update ops.settings
   set brief_holder = null, brief_machine = null, brief_until = null
 where brief_holder = $1
   and brief_machine = $2;

-- name: addBriefCost :exec
-- What a brief cost that was asked for on the day of $1.
insert into ops.brief_costs (day, cost_usd)
values (($1::timestamptz at time zone 'UTC')::date, $2)
on conflict (day) do update
   set cost_usd = ops.brief_costs.cost_usd + excluded.cost_usd;

-- name: findSummary :optional
-- The newest summary. Empty before the first one.
select id, ended_at, summary
  from ops.sessions
 where summary is not null
   and ended_at is not null
 order by started_at desc, id desc
 limit 1;

-- name: listDays :many
-- Sessions, their cost with that of briefs, and events, by day (UTC) since $1; days without all of them have no row.
with sessions as (
  select (started_at at time zone 'UTC')::date as day, count(*) as sessions, coalesce(sum(cost_usd), 0) as cost_usd
    from ops.sessions
   where started_at >= $1
   group by 1
), events as (
  select (created_at at time zone 'UTC')::date as day, count(*) as events
    from ops.events
   where created_at >= $1
   group by 1
), briefs as (
  select day, cost_usd
    from ops.brief_costs
   where day >= ($1::timestamptz at time zone 'UTC')::date
)
select to_char(day, 'YYYY-MM-DD') as day, coalesce(s.sessions, 0) as sessions,
       coalesce(s.cost_usd, 0) + coalesce(b.cost_usd, 0) as cost_usd, coalesce(e.events, 0) as events
  from sessions s
  full join events e using (day)
  full join briefs b using (day)
 order by 1
 limit $2;

-- name: claimNotice :optional
-- The next notice that is due at $1, taken for one try; without an answer it is due again, later each time: after
-- 10 s, 20 s, 40 s, an hour at most. Notices over a day old are no news. What is due in over an hour is so by a clock
-- that was set back since. Empty when none is due.
with due as (
  select id
    from ops.notices
   where sent_at is null
     and (next_at <= $1::timestamptz or next_at > $1::timestamptz + interval '61 minutes')
     and created_at > $1::timestamptz - interval '1 day'
   order by next_at, id
   limit 1
   for update skip locked
), taken as (
  update ops.notices n
     set attempts = n.attempts + 1,
         next_at = $1::timestamptz + least(interval '1 hour', interval '10 seconds' * power(2, least(n.attempts, 9)))
    from due
   where n.id = due.id
  returning n.id, n.event_id, n.session_id, n.created_at
)
select t.id, case when t.event_id is null then 'session' else 'event' end as kind,
       coalesce(t.session_id, e.session_id) as session_id, coalesce(e.level, 'critical') as level,
       coalesce(e.service, 'gatehouse') as service, t.created_at,
       coalesce(e.message,
                (select f.message
                   from ops.events f
                  where f.session_id = t.session_id
                    and f.service = 'gatehouse'
                  order by f.id desc
                  limit 1),
                'Session ' || t.session_id || ' failed') as message
  from taken t
  left join ops.events e on e.id = t.event_id;

-- name: countTold :one
-- Notices of events of the session $1, and whether one has told the service $2 in the same words $3.
select (select count(*)
          from ops.events e
          join ops.notices n on n.event_id = e.id
         where e.session_id = $1) as notices,
       exists (select
                 from ops.notices n
                 join ops.events e on e.id = n.event_id
                where e.service is not distinct from $2
                  and e.message = $3) as same;

-- name: withdrawNotice :exec
-- The event $1 is not told any more, unless it was.
delete from ops.notices
 where event_id = $1
   and sent_at is null;

-- name: finishNotice :exec
update ops.notices
   set sent_at = $2
 where id = $1;

-- name: pruneNotices :exec
-- Notices from before $1 are no news any more, whether they were sent or not.
delete from ops.notices
 where created_at < $1;

-- name: takePruningTurn :one
-- Whether this transaction prunes: only one does at a time, of all instances.
select pg_try_advisory_xact_lock(7203005) as taken;

-- name: pruneLines :one
-- Looks at the $2 oldest lines and removes those of sessions whose whole chain ended before $1; count 0 means done.
with oldest as (
  select session_id, seq
    from ops.session_lines
   order by session_id, seq
   limit $2
), old as (
  select s.id
    from ops.sessions s
   where s.id in (select session_id from oldest)
     and not exists (select
                       from ops.sessions c
                      where (c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id))
                        and (c.ended_at is null or c.ended_at >= $1))
), removed as (
  delete from ops.session_lines
   where (session_id, seq) in (select session_id, seq from oldest)
     and session_id in (select id from old)
  returning session_id
)
select count(*)::integer as removed from removed;

-- name: pruneSessions :one
-- Removes at most $2 escalation chains of which every session ended before $1 and has no lines any more; count 0
-- means done.
with old as (
  select s.id
    from ops.sessions s
   where s.chain_id is null
     and s.started_at < $1
     and not exists (select
                       from ops.sessions c
                      where (c.id = s.id or c.chain_id = s.id)
                        and (c.ended_at is null
                             or c.ended_at >= $1
                             or exists (select from ops.session_lines where session_id = c.id)))
   order by s.started_at
   limit $2
), removed as (
  delete from ops.sessions
   where id in (select id from old)
      or chain_id in (select id from old)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneEvents :one
-- Removes at most $2 events from before $1; count 0 means done.
with removed as (
  delete from ops.events
   where id in (select id from ops.events where created_at < $1 order by created_at limit $2)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneActions :one
-- Removes at most $2 actions from before $1; count 0 means done.
with removed as (
  delete from ops.actions
   where id in (select id from ops.actions where at < $1 order by at limit $2)
  returning id
)
select count(*)::integer as removed from removed;

-- name: pruneAlerts :one
-- Removes at most $2 alerts that were delivered last before $1; count 0 means done.
with removed as (
  delete from ops.alerts
   where id in (select id from ops.alerts where last_seen < $1 order by last_seen limit $2)
  returning id
)
select count(*)::integer as removed from removed;
