-- name: syncChecks
-- Makes the table list the checks of the inventory. What it has no longer keeps its history. One that is new, or that
-- looks at something else now, is due at once.
with given as materialized (
  select service, name, type, every_s, version
    from jsonb_to_recordset(:checks::jsonb)
      as given(service text, name text, type text, every_s integer, version text)
), saved as (
  insert into ops.checks (service, name, type, every_s, version, next_at, since)
  select service, name, type, every_s, version, :now, :now
    from given
   order by service, name
  on conflict (service, name) do update
     set type = excluded.type, every_s = excluded.every_s, version = excluded.version, removed_at = null,
         next_at = excluded.next_at
   where ops.checks.removed_at is not null
      or ops.checks.version <> excluded.version
)
update ops.checks c
   set removed_at = :now
 where removed_at is null
   and not exists (select from given g where g.service = c.service and g.name = c.name);

-- name: claimChecks
-- Takes checks that are due, which no other instance then runs for :seconds. One that is due much later than its
-- interval has it was planned before the clock was set back. `late_s`: how long ago each was due.
with due as materialized (
  select id
    from ops.checks
   where removed_at is null
     and (next_at <= :now or next_at > :now::timestamptz + 2 * every_s * interval '1 s')
     and (claimed_until is null or claimed_until <= :now
          or claimed_until > :now::timestamptz + 2 * :seconds * interval '1 s')
   order by next_at, id
   limit :limit
     for update skip locked
), claimed as (
  update ops.checks c
     set claimed_until = :now::timestamptz + :seconds * interval '1 s'
    from due
   where c.id = due.id
  returning c.id, c.service, c.name, c.claimed_until,
            greatest(0, extract(epoch from :now::timestamptz - c.next_at))::float8 as late_s
)
select id, service, name, claimed_until, late_s
  from claimed
 limit :limit;

-- name: lockChecks
-- The checks of a list, held until the transaction ends. `begun`: how often it began to fail in the last hour.
with given as (
  select service, name from jsonb_to_recordset(:checks::jsonb) as given(service text, name text)
), held as materialized (
  select c.*
    from ops.checks c
    join given g on g.service = c.service and g.name = c.name
   order by c.id
   limit :limit
     for no key update of c
)
select c.id, c.service, c.name, c.state, c.checked_at, c.opposing, c.told_event, c.claimed_until,
       exists (select
                 from ops.mutes m
                where m.starts_at <= :now
                  and m.ends_at > :now
                  and (m.service is null or m.service = c.service)
                  and (m.check_name is null or m.check_name = c.name)) as muted,
       (select count(*)
          from ops.check_periods p
         where p.check_id = c.id
           and p.state = 'fail'
           and p.began_at > :now::timestamptz - interval '1 hour')::integer as begun
  from held c
 limit :limit;

-- name: saveResults
-- Stores results, and the state of each check after its result. `found` is what it found, `state` what counts;
-- `changed`: the state is another one than before. `soon`: it looks again after ten seconds.
with given as materialized (
  select id, found, state, changed, soon, opposing, message, ms
    from jsonb_to_recordset(:results::jsonb)
      as given(id bigint, found text, state text, changed boolean, soon boolean, opposing smallint, message text,
               ms integer)
), noted as (
  insert into ops.check_results (check_id, at, state, ms, message)
  select id, :now, found, ms, message from given
  on conflict (check_id, at) do nothing
), counted as (
  insert into ops.check_counts as t (check_id, span, start, runs, failures, warnings, unknown, ms_min, ms_sum, ms_max)
  select id, span, date_trunc(span, :now, 'UTC'), 1, (found = 'fail')::integer, (found = 'warn')::integer,
         (found = 'unknown')::integer, case when found <> 'unknown' then ms end,
         case when found = 'unknown' then 0 else ms end, case when found <> 'unknown' then ms end
    from given
   cross join (values ('hour'), ('day')) as spans(span)
   order by id, span
  on conflict (check_id, span, start) do update
     set runs = t.runs + 1, failures = t.failures + excluded.failures, warnings = t.warnings + excluded.warnings,
         unknown = t.unknown + excluded.unknown, ms_min = least(t.ms_min, excluded.ms_min),
         ms_sum = t.ms_sum + excluded.ms_sum, ms_max = greatest(t.ms_max, excluded.ms_max)
), ended as (
  update ops.check_periods p
     set ended_at = :now, last_message = c.message
    from given g
    join ops.checks c on c.id = g.id
   where g.changed
     and p.check_id = g.id
     and p.ended_at is null
)
update ops.checks c
   set state = g.state, opposing = g.opposing, checked_at = :now, ms = g.ms, claimed_until = null,
       message = case when g.found = g.state then g.message else c.message end,
       since = case when g.changed then :now else c.since end,
       next_at = case when g.soon then :now::timestamptz + least(10, c.every_s) * interval '1 s'
                      else ops.next_look(c.id, c.every_s, :now) end,
       session_id = :session
  from given g
 where c.id = g.id;

-- name: beginPeriods
-- The state of each of these checks begins now. In a statement of its own: the one before it has ended the last period.
insert into ops.check_periods (check_id, state, began_at, message)
select c.id, c.state, c.since, c.message
  from ops.checks c
  join jsonb_array_elements_text(:ids::jsonb) as given(id) on c.id = given.id::bigint
 order by c.id;

-- name: saveNotifiedEvent
-- The event whose notice reported the failure of a check; null once its recovery is reported.
update ops.checks
   set told_event = :event
 where id = :id;

-- name: listChecks
-- The checks of the inventory. `muted_until`: until when failures are not told.
select c.id, c.service, c.name, c.type, c.every_s, c.state, c.since, c.message, c.ms, c.checked_at, c.session_id,
       (select max(m.ends_at)
          from ops.mutes m
         where m.starts_at <= :now
           and m.ends_at > :now
           and (m.service is null or m.service = c.service)
           and (m.check_name is null or m.check_name = c.name)) as muted_until
  from ops.checks c
 where c.removed_at is null
 order by c.service, c.name
 limit :limit;

-- name: listChanges
-- Which checks of the inventory have another state than they had at a time, the oldest change first. `before` is the
-- state at that time.
select c.service, c.name, p.state as before, c.state
  from ops.checks c
  join lateral (select state
                  from ops.check_periods
                 where check_id = c.id
                   and began_at <= :since
                 order by began_at desc, id desc
                 limit 1) p on p.state <> c.state
 where c.removed_at is null
   and c.since > :since
 order by c.since, c.id
 limit :limit;

-- name: saveBeat
-- What a job said of itself: `begun`, `ok` or `failed`. Its check looks at it in the next round. Empty when the check
-- is gone.
update ops.checks
   set begun_at = case when :beat = 'begun' then :now else begun_at end,
       beat_ms = case when :beat = 'begun' then beat_ms
                      when begun_at > coalesce(beat_at, '-infinity')
                      then least(2147483647, extract(epoch from :now::timestamptz - begun_at) * 1000)::integer end,
       beat_at = case when :beat = 'begun' then beat_at else :now end,
       beat_failed = case when :beat = 'begun' then beat_failed else :beat = 'failed' end,
       next_at = :now
 where service = :service
   and name = :name
returning id;

-- name: findBeat
-- What its job said last. Empty when no check of the inventory has this name.
select beat_at, beat_failed, beat_ms, begun_at
  from ops.checks
 where service = :service
   and name = :name;

-- name: findCheck
-- Empty when no check has this id, or retention has removed it.
select id, service, name, type, every_s, state, since, message, ms, checked_at, session_id, removed_at
  from ops.checks
 where id = :id;

-- name: listCounts
-- The results of checks by hour or by day since a time, the oldest first.
select check_id, start, runs, failures, warnings, unknown, ms_min, ms_max,
       case when runs > unknown then (ms_sum / (runs - unknown))::integer end as ms_mean
  from ops.check_counts
 where check_id in (select value::bigint from jsonb_array_elements_text(:ids::jsonb))
   and span = :span
   and start >= :since
 order by check_id, start
 limit :limit;

-- name: listPeriods
-- What the state of a check was, the newest first.
select id, state, began_at, ended_at, message, last_message
  from ops.check_periods
 where check_id = :id
   and (:before::bigint is null or id < :before)
 order by began_at desc, id desc
 limit :limit;

-- name: listFailures
-- When checks of these services have failed since a time, the newest first.
select c.service, p.began_at, p.ended_at
  from ops.check_periods p
  join ops.checks c on c.id = p.check_id
 where p.state = 'fail'
   and p.began_at > :since
   and c.removed_at is null
   and c.service in (select jsonb_array_elements_text(:services::jsonb))
 order by p.began_at desc, p.id desc
 limit :limit;
