-- name: listIncidentChecks
-- The checks whose failure sessions of an alert looked into, and then those of its service, the worst first.
with involved as (
  select i.check_id as id
    from ops.sessions s
    join ops.investigations i on i.session_id = s.id
   where s.alert_id = :alert
)
select c.id, c.service, c.name, c.state, c.since, c.message, c.checked_at
  from ops.checks c
 where c.removed_at is null
   and c.id in (select id from involved union select id from ops.checks where service = :service)
 order by c.id not in (select id from involved), array_position(array['fail', 'warn', 'unknown', 'ok'], c.state),
       c.service, c.name
 limit :limit;

-- name: listIncidentChanges
-- What the states of checks became from one time to another, newest first, at most :each of a check.
select p.check_id, c.service, c.name, p.state, p.began_at, p.ended_at, p.message
  from jsonb_array_elements_text(:checks::jsonb) as given(id)
  join ops.checks c on c.id = given.id::bigint
 cross join lateral (
       select *
         from ops.check_periods
        where check_id = c.id
          and began_at between :since and :until
        order by began_at desc
        limit :each
       ) p
 order by p.began_at desc, p.id desc
 limit :limit;

-- name: listIncidentEvents
-- What sessions recorded, newest first. The sessions are looked up one by one, here and below: for a list of unknown
-- length the planner would read the whole table.
select e.id, e.session_id, e.level, e.service, e.message, e.created_at
  from jsonb_array_elements_text(:sessions::jsonb) as given(id)
 cross join lateral (
       select *
         from ops.events
        where session_id = given.id::bigint
        order by id desc
        limit :limit
       ) e
 order by e.id desc
 limit :limit;

-- name: listIncidentOperations
-- The operations that sessions ran or asked for, newest first. `status` is that of the approval; null where nobody had
-- to be asked.
select o.*
  from jsonb_array_elements_text(:sessions::jsonb) as given(id)
 cross join lateral (
       (select a.at, a.service, a.operation, a.session_id, p.status, p.reason, p.decided_by, a.outcome
          from ops.actions a
          left join ops.approvals p on p.action_id = a.id
         where a.session_id = given.id::bigint
         order by a.at desc
         limit :limit)
       union all
       (select p.created_at, p.service, p.operation, p.session_id, p.status, p.reason, p.decided_by, p.outcome
          from ops.approvals p
         where p.session_id = given.id::bigint
           and p.action_id is null
         order by p.created_at desc
         limit :limit)
       ) o
 order by o.at desc
 limit :limit;

-- name: listIncidentMemories
-- What sessions noted for later ones, oldest first.
select m.id, m.service, m.category, m.observation, m.confidence, m.active, m.created_at, m.updated_at, m.session_id,
       m.tier, m.confirmed_by
  from jsonb_array_elements_text(:sessions::jsonb) as given(id)
 cross join lateral (
       select *
         from ops.memories
        where session_id = given.id::bigint
        order by id
        limit :limit
       ) m
 order by m.id
 limit :limit;

-- name: addNote
-- Empty when the alert has :most notes or more.
insert into ops.alert_notes (alert_id, at, author, text)
select :alert, :now, :author, :text
 where (select count(*) from ops.alert_notes where alert_id = :alert) < :most
returning id, at, author, text;

-- name: listNotes
-- Oldest first.
select id, at, author, text
  from ops.alert_notes
 where alert_id = :alert
 order by id
 limit :limit;
