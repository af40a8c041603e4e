-- name: syncChecks
-- Makes the table list the checks of the inventory. What it has no longer keeps its history. One that is new, or that
-- has another definition now, is due at once, and a run that is under way does not count. An instance may not know
-- yet what was made or removed by hand: that stays.
with given as materialized (
  select service, name, type, every_s, version, source, investigate
    from jsonb_to_recordset(:checks::jsonb)
      as given(service text, name text, type text, every_s integer, version text, source text, investigate smallint)
), saved as (
  insert into ops.checks (service, name, type, every_s, version, source, investigate, next_at, since)
  select service, name, type, every_s, version, source, investigate, :now, :now
    from given
   order by service, name
  on conflict (service, name) do update
     set type = excluded.type, every_s = excluded.every_s, version = excluded.version, source = excluded.source,
         investigate = excluded.investigate, removed_at = null, next_at = excluded.next_at, claimed_until = null
   where (excluded.source = 'file' or ops.checks.definition is not null)
     and (ops.checks.removed_at is not null
          or ops.checks.version <> excluded.version
          or ops.checks.source <> excluded.source
          or ops.checks.investigate is distinct from excluded.investigate)
)
update ops.checks c
   set removed_at = :now
 where removed_at is null
   and definition is null
   and not exists (select from given g where g.service = c.service and g.name = c.name);

-- name: takeLostChecks
-- The checks that the inventory has lost while people know that they fail: nobody looks at them any more.
with taken as (
  update ops.checks
     set told_event = null
   where removed_at is not null
     and told_event is not null
  returning id, service, name
)
select id, service, name
  from taken
 order by id
 limit :limit;

-- name: findLate
-- Whether a check has been due for :seconds, and nobody runs it.
select exists (select
                 from ops.checks
                where removed_at is null
                  and next_at < :now::timestamptz - :seconds::integer * interval '1 s'
                  and (claimed_until is null or claimed_until <= :now)) as late;

-- name: claimChecks
-- Takes checks that are due, which no other instance then runs for :seconds: those of the types :network_types, or the
-- others. One that is due later than twice its interval from now was planned before the clock was set back. `late_s`:
-- how long ago each was due.
with due as materialized (
  select id
    from ops.checks
   where removed_at is null
     and (type in (select jsonb_array_elements_text(:network_types::jsonb))) = :network
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
  returning c.id, c.service, c.name, c.claimed_until, c.asked_at is not null as asked,
            greatest(0, extract(epoch from :now::timestamptz - c.next_at))::float8 as late_s
)
select id, service, name, claimed_until, asked, late_s
  from claimed
 limit :limit;

-- name: lockChecks
-- The checks of a list that are not removed, held until the transaction ends. `begun`: how often each began to fail in
-- the last hour.
with given as (
  select service, name from jsonb_to_recordset(:checks::jsonb) as given(service text, name text)
), held as materialized (
  select c.*
    from ops.checks c
    join given g on g.service = c.service and g.name = c.name
   where c.removed_at is null
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
          from (select state, began_at from ops.check_periods where check_id = c.id order by id desc limit 20) p
         where p.state = 'fail'
           and p.began_at > :now::timestamptz - interval '1 hour')::integer as begun
  from held c
 limit :limit;

-- name: saveResults
-- Stores results, and the state of each check after its result. `found` is what it found, `state` what counts;
-- `changed`: the state is another one than before. `soon`: it runs again after ten seconds. `asked`: somebody had asked
-- for the run; what was asked for meanwhile stays due, and so does a heartbeat whose job has called meanwhile. A bad result
-- counts as failed once its retries were bad: uptime is the part of the runs after which the check did not fail. Now and then
-- what is older than the last 500 results goes.
with given as materialized (
  select id, found, state, changed, soon, asked, opposing, message, ms
    from jsonb_to_recordset(:results::jsonb)
      as given(id bigint, found text, state text, changed boolean, soon boolean, asked boolean, opposing smallint,
               message text, ms integer)
), noted as (
  insert into ops.check_results (check_id, at, state, ms, message)
  select id, :now, found, ms, message from given
  on conflict (check_id, at) do nothing
), trimmed as (
  delete from ops.check_results r
   using (select id, (select at from ops.check_results where check_id = given.id order by at desc offset 500 limit 1) as last
            from given
           where random() < 0.02) g
   where r.check_id = g.id
     and r.at <= g.last
), counted as (
  insert into ops.check_counts as t (check_id, span, start, runs, failures, warnings, unknown, ms_min, ms_sum, ms_max)
  select id, span, date_trunc(span, :now, 'UTC'), 1, (state = 'fail' and found <> 'unknown')::integer,
         (state = 'warn' and found <> 'unknown')::integer, (found = 'unknown' or state = 'unknown')::integer, case when found <> 'unknown' then ms end,
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
       asked_at = case when not g.asked then c.asked_at end,
       next_at = case when c.asked_at is not null and not g.asked then c.next_at
                      when c.next_at > c.claimed_until - interval '2 minutes' and c.next_at <= :now then c.next_at
                      when g.soon then :now::timestamptz + least(10, c.every_s) * interval '1 s'
                      else ops.next_run(c.id, c.every_s, :now) end,
       session_id = :session
  from given g
 where c.id = g.id;

-- name: beginPeriods
-- Begins a period for each of these checks. saveResults has ended the last one: one statement can't do both.
insert into ops.check_periods (check_id, state, began_at, message)
select c.id, c.state, c.since, c.message
  from ops.checks c
  join jsonb_array_elements_text(:ids::jsonb) as given(id) on c.id = given.id::bigint
 order by c.id;

-- name: saveNotifiedEvent
-- The event whose notice reported the failure of a check; null once its recovery is reported.
update ops.checks
   set told_event = :event, told_at = case when :event::bigint is not null then :now::timestamptz end
 where id = :id;

-- name: listChecks
-- The checks of the inventory, or the one of an id. `muted_until`: until when failures are not told.
select c.id, c.service, c.name, c.type, c.every_s, c.source, c.state, c.since, c.message, c.ms, c.checked_at,
       c.asked_at, c.session_id,
       (select max(m.ends_at)
          from ops.mutes m
         where m.starts_at <= :now
           and m.ends_at > :now
           and (m.service is null or m.service = c.service)
           and (m.check_name is null or m.check_name = c.name)) as muted_until
  from ops.checks c
 where c.removed_at is null
   and (:id::bigint is null or c.id = :id)
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
                 order by id desc
                 limit 1) p on p.state <> c.state
 where c.removed_at is null
   and c.since > :since
 order by c.since, c.id
 limit :limit;

-- name: listTransitions
-- Changes of the state of checks since a time, the newest first. The first state of a check is no change.
select c.service, c.name, p.began_at as at, before.state as before, p.state, p.message
  from ops.check_periods p
  join ops.checks c on c.id = p.check_id and c.removed_at is null
  join lateral (select state from ops.check_periods where check_id = p.check_id and id < p.id order by id desc limit 1)
       as before on true
 where p.began_at > :since
 order by p.began_at desc, p.id desc
 limit :limit;

-- name: saveBeat
-- What a job said of itself: `begun`, `ok` or `failed`, and the last lines that it sent along. A run that has not ended
-- within :grace_s when the next one begins counts as failed. No run begins after :now, also when the clock was set back.
-- Its check runs in the next round. Empty when the check is gone.
update ops.checks
   set begun_at = case when :beat = 'begun' or begun_at > :now then :now else begun_at end,
       first_beat_at = coalesce(first_beat_at, :now),
       beat_ms = case when :beat = 'begun' then beat_ms
                      when begun_at > coalesce(beat_at, '-infinity')
                      then greatest(0, least(2147483647, extract(epoch from :now::timestamptz - begun_at) * 1000))::integer end,
       beat_at = case when :beat = 'begun' then beat_at else :now end,
       beat_failed = case :beat when 'ok' then false
                                when 'failed' then true
                                else beat_failed
                                  or coalesce(begun_at > coalesce(beat_at, '-infinity')
                                              and begun_at < :now::timestamptz - :grace_s::integer * interval '1 s', false) end,
       beat_text = case when :beat = 'begun' then beat_text else :text end,
       next_at = :now
 where service = :service
   and name = :name
   and removed_at is null
returning id;

-- name: findBeat
-- What the job of a heartbeat last said, and the state of its check. Empty for a check that is gone.
select beat_at, beat_failed, beat_ms, beat_text, begun_at, first_beat_at, state
  from ops.checks
 where service = :service
   and name = :name;

-- name: listCounts
-- The results of checks by hour or by day since a time, at most :each of a check, the oldest first. The checks are
-- looked up one by one: for a list of unknown length the planner would read the counts of all checks.
select c.check_id, c.start, c.runs, c.failures, c.warnings, c.unknown, c.ms_min, c.ms_max,
       case when c.runs > c.unknown then (c.ms_sum / (c.runs - c.unknown))::integer end as ms_mean
  from jsonb_array_elements_text(:ids::jsonb) as given(id)
 cross join lateral (
       select *
         from ops.check_counts
        where check_id = given.id::bigint
          and span = :span
          and start >= :since
        order by start
        limit :each
       ) c
 order by c.check_id, c.start
 limit :limit;

-- name: sumHours
-- The results of the checks of each service by hour since a time. :services is a list of names with the ids of checks, which
-- are looked up one by one, as in listCounts.
select s.name as service, c.start, sum(c.runs)::integer as runs, sum(c.failures)::integer as failures,
       sum(c.unknown)::integer as unknown
  from jsonb_to_recordset(:services::jsonb) as s(name text, ids jsonb)
 cross join lateral jsonb_array_elements_text(s.ids) as given(id)
 cross join lateral (
       select start, runs, failures, unknown
         from ops.check_counts
        where check_id = given.id::bigint
          and span = 'hour'
          and start >= :since
        order by start
        limit :each
       ) c
 group by s.name, c.start
 order by s.name, c.start
 limit :limit;

-- name: listPeriods
-- What the state of a check was, the newest first.
select id, state, began_at, ended_at, message, last_message
  from ops.check_periods
 where check_id = :id
   and (:before::bigint is null or id < :before)
 order by id desc
 limit :limit;

-- name: listFirstPeriods
-- When the first known state of each check began.
select given.id::bigint as check_id, p.began_at
  from jsonb_array_elements_text(:ids::jsonb) as given(id)
 cross join lateral (
       select began_at
         from ops.check_periods
        where check_id = given.id::bigint
        order by id
        limit 1
       ) p
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

-- name: askCheck
-- Makes a check due at once. Empty for an unknown id.
update ops.checks
   set asked_at = :now, next_at = :now
 where id = :id
   and removed_at is null
returning id;

-- name: listDefinitions
-- What was made by hand.
select id, service, name, definition, headers
  from ops.checks
 where definition is not null
 order by service, name
 limit :limit;

-- name: addDefinition
-- A check made by hand. Empty when the inventory has one of this name, or when :most were made by hand already. One that
-- was removed has its history again.
with added as (
  insert into ops.checks (service, name, type, every_s, version, source, definition, headers, next_at, since)
  select :service, :name, :type, :every_s, :version, 'hand', :definition, :headers, :now, :now
   where (select count(*) from ops.checks where definition is not null) < :most
  on conflict (service, name) do update
     set type = excluded.type, every_s = excluded.every_s, version = excluded.version, source = excluded.source,
         definition = excluded.definition, headers = excluded.headers, removed_at = null, next_at = excluded.next_at
   where ops.checks.removed_at is not null
     and ops.checks.definition is null
  returning id
), notified as (
  select pg_notify('ops_checks', '') as sent from added
)
select added.id from added left join notified on true;

-- name: readAsked
-- When somebody asked for a run that has not ended, and whether it has begun. Empty for an unknown id.
select asked_at, coalesce(claimed_until > :now, false) as running
  from ops.checks
 where id = :id
   and removed_at is null;

-- name: findDefinition
-- A check of the inventory with what was made by hand of it. Empty for an unknown id.
select id, service, name, source, definition, headers
  from ops.checks
 where id = :id
   and (removed_at is null or definition is not null);

-- name: lockDefinition
-- The same, held until the transaction ends. Empty for an unknown id.
select id, service, name, source, definition, headers
  from ops.checks
 where id = :id
   and (removed_at is null or definition is not null)
   for no key update;

-- name: setDefinition
-- The check is due at once; a run that is under way does not count.
with changed as (
  update ops.checks
     set type = :type, every_s = :every_s, version = :version, definition = :definition, headers = :headers,
         next_at = :now, claimed_until = null
   where id = :id
  returning id
)
select pg_notify('ops_checks', '') from changed;

-- name: removeDefinition
-- The history stays.
with changed as (
  update ops.checks
     set definition = null, headers = '{}', removed_at = :now
   where id = :id
  returning id
)
select pg_notify('ops_checks', '') from changed;

-- name: findByReference
-- The checks of the inventory that SERVICE/NAME means, and those of a service that is called so.
select c.id, c.service, c.name, c.service || '/' || c.name = :reference as exact
  from ops.checks c
 where c.removed_at is null
   and (c.service || '/' || c.name = :reference or c.service = :reference)
 order by exact desc, c.id
 limit :limit;
