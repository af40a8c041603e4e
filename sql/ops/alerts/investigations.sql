-- name: listWaiting
-- Checks whose failure waits for a session, or the one of an id: told as failing, marked, not muted, and no session has
-- looked into this failure. `told_at`: since when. `cools_until`: when the cooldown after its last session ends. A time
-- that is ahead was written before the clock was set back.
select c.id, c.service, c.name, c.type, c.every_s, c.investigate as tier, c.since, c.message,
       c.told_event as event_id, c.told_at,
       case when i.at > :now::timestamptz - :cooldown_s::integer * interval '1 s' and i.at <= :now
            then i.at + :cooldown_s::integer * interval '1 s' end as cools_until
  from ops.checks c
  left join ops.investigations i on i.check_id = c.id
 where c.removed_at is null
   and c.investigate is not null
   and c.state = 'fail'
   and c.told_event is not null
   and i.event_id is distinct from c.told_event
   and (:id::bigint is null or c.id = :id)
   and not exists (select
                     from ops.mutes m
                    where m.starts_at <= :now
                      and m.ends_at > :now
                      and (m.service is null or m.service = c.service)
                      and (m.check_name is null or m.check_name = c.name))
 order by cools_until nulls first, c.told_at, c.id
 limit :limit;

-- name: saveInvestigations
-- A session looks into the failures of these checks.
insert into ops.investigations (check_id, event_id, at, session_id)
select id, event_id, :now, :session
  from jsonb_to_recordset(:checks::jsonb) as given(id bigint, event_id bigint)
 order by id
on conflict (check_id) do update
   set event_id = excluded.event_id, at = excluded.at, session_id = excluded.session_id;

-- name: findInvestigation
-- The tier of the sessions that a check starts (null: none), and the last one. Empty for an unknown id.
select c.investigate as tier, i.at, i.session_id
  from ops.checks c
  left join ops.investigations i on i.check_id = c.id
 where c.id = :id;

-- name: listLastResults
-- The newest results of checks, at most :each of a check.
select r.check_id, r.at, r.state, r.ms, r.message
  from jsonb_array_elements_text(:ids::jsonb) as given(id)
 cross join lateral (
       select *
         from ops.check_results
        where check_id = given.id::bigint
        order by at desc
        limit :each
       ) r
 order by r.check_id, r.at desc
 limit :limit;

-- name: listLastPeriods
-- What the states of checks were, the newest first, at most :each of a check.
select p.check_id, p.state, p.began_at, p.ended_at, p.message
  from jsonb_array_elements_text(:ids::jsonb) as given(id)
 cross join lateral (
       select *
         from ops.check_periods
        where check_id = given.id::bigint
        order by id desc
        limit :each
       ) p
 order by p.check_id, p.began_at desc
 limit :limit;

-- name: listOtherChanges
-- Changes of the states of all checks but these since a time, the newest first.
select c.service, c.name, p.state, p.began_at, p.message
  from ops.check_periods p
  join ops.checks c on c.id = p.check_id
 where p.began_at >= :since
   and c.removed_at is null
   and c.id not in (select id::bigint from jsonb_array_elements_text(:ids::jsonb) as given(id))
 order by p.began_at desc, p.id desc
 limit :limit;

-- name: listLastActions
-- Operations that ran since a time, the newest first.
select at, service, operation, outcome
  from ops.actions
 where at >= :since
 order by at desc, id desc
 limit :limit;

-- name: resolveAlerts
-- Of what failed: those of which no check fails any more, or another session has looked into what does.
update ops.alerts a
   set state = 'resolved', resolved_at = :now
 where a.source = 'gatehouse'
   and a.state = 'firing'
   and not exists (select
                     from ops.investigations i
                     join ops.sessions s on s.id = i.session_id
                     join ops.checks c on c.id = i.check_id
                    where s.alert_id = a.id
                      and c.told_event = i.event_id);
