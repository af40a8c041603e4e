-- name: lockNotices
-- Serializes those that may find the same beginning or end.
select pg_advisory_xact_lock(7203007);

-- name: beginNotice
-- Of an event with which something begins.
insert into ops.notices (event_id, created_at, key, about_target)
values (:event, :now, :key, :about_target);

-- name: endNotice
-- Of an event with which something ends; without effect unless its beginning has a notice.
with ended as (
  update ops.notices
     set ended_at = :now
   where key = :key
     and ended_at is null
  returning id, about_target
)
insert into ops.notices (event_id, created_at, begin_id, about_target)
select :event, :now, id, about_target
  from ended;

-- name: countNotices
-- How many notices a session has sent, and whether one told the same words of the same service.
select (select count(*)
          from ops.events e
          join ops.notices n on n.event_id = e.id
         where e.session_id = :session) as notices,
       exists (select
                 from ops.notices n
                 join ops.events e on e.id = n.event_id
                where e.service is not distinct from :service
                  and e.message = :message) as same;

-- name: planSends
-- Plans what the targets get: what came since their time, what lasts for as long as they ask, and the end of it. A
-- beginning that is over is no news: only its end is.
insert into ops.notice_sends (notice_id, target, next_at)
select n.id, t.name, :now
  from jsonb_to_recordset(:targets::jsonb)
    as t(name text, since timestamptz, services jsonb, levels jsonb, after_s integer)
  join ops.notices n on n.created_at >= t.since
  left join ops.notices b on b.id = n.begin_id
  left join ops.events e on e.id = coalesce(b.event_id, n.event_id)
 where n.about_target is distinct from t.name
   and n.ended_at is null
   and (t.services is null or t.services @> to_jsonb(coalesce(e.service, 'gatehouse')))
   and (t.levels is null or t.levels @> to_jsonb(coalesce(e.level, 'critical')))
   and (t.after_s = 0 or n.key is null or n.created_at <= :now::timestamptz - t.after_s * interval '1 s')
   and (t.after_s = 0 or b.id is null or b.ended_at >= b.created_at + t.after_s * interval '1 s'
        or exists (select from ops.notice_sends s where s.notice_id = b.id and s.target = t.name))
   and not exists (select
                     from ops.notice_sends s
                    where s.notice_id = n.id
                      and s.target = t.name)
on conflict do nothing;

-- name: planReminders
-- Plans reminders of failures that last, until somebody acknowledges them. A check that has left the inventory gets
-- none: it does not run any more, so nobody knows whether it still fails.
insert into ops.notice_sends (notice_id, target, number, next_at)
select s.notice_id, s.target, s.number + 1, :now
  from jsonb_to_recordset(:targets::jsonb) as t(name text, remind_s integer)
  join ops.notice_sends s on s.target = t.name and s.sent_at <= :now::timestamptz - t.remind_s * interval '1 s'
  join ops.notices n on n.id = s.notice_id
 where n.key is not null
   and n.ended_at is null
   and n.acknowledged_at is null
   and not exists (select from ops.checks c where 'check ' || c.id = n.key and c.removed_at is not null)
   and not exists (select
                     from ops.notice_sends l
                    where l.notice_id = s.notice_id
                      and l.target = s.target
                      and l.number > s.number)
on conflict do nothing;

-- name: claimSend
-- Claims the next due notice of a target for one attempt and schedules the next one: after 10 s, 20 s, 40 s, at most an
-- hour. One due in over an hour was scheduled by a clock that was set back since. In quiet hours only what is, or was,
-- critical. Empty when none is due.
with due as (
  select s.notice_id, s.target, s.number
    from ops.notice_sends s
    join ops.notices n on n.id = s.notice_id
    left join ops.notices b on b.id = n.begin_id
    left join ops.events e on e.id = coalesce(b.event_id, n.event_id)
   where s.target = :target
     and s.sent_at is null
     and (s.next_at <= :now or s.next_at > :now::timestamptz + interval '61 minutes')
     and n.ended_at is null
     and (s.number = 0 or n.acknowledged_at is null)
     and (not :quiet::boolean or coalesce(e.level, 'critical') = 'critical')
   order by s.next_at, s.notice_id
   limit 1
   for update of s skip locked
), taken as (
  update ops.notice_sends s
     set attempts = s.attempts + 1,
         next_at = :now::timestamptz + least(interval '1 hour', interval '10 seconds' * power(2, least(s.attempts, 9)))
    from due
   where s.notice_id = due.notice_id
     and s.target = due.target
     and s.number = due.number
  returning s.notice_id, s.number
)
select n.id, case when n.event_id is null then 'session' else 'event' end as kind,
       coalesce(n.session_id, e.session_id) as session_id, coalesce(e.level, 'critical') as level,
       coalesce(e.service, 'gatehouse') as service, n.created_at, n.key is not null as lasts, n.begin_id,
       taken.number as reminder,
       coalesce(e.message,
                (select f.message
                   from ops.events f
                  where f.session_id = n.session_id
                    and f.service = 'gatehouse'
                  order by f.id desc
                  limit 1),
                'Session ' || n.session_id || ' ' || s.status) as message
  from taken
  join ops.notices n on n.id = taken.notice_id
  left join ops.events e on e.id = n.event_id
  left join ops.sessions s on s.id = n.session_id;

-- name: finishSend
-- Null for the problem of a notice that was sent. A target that was removed meanwhile does not fail, and what another
-- instance has sent meanwhile stays sent.
with finished as (
  update ops.notice_sends
     set sent_at = case when :problem::text is null then :now::timestamptz end, problem = :problem
   where notice_id = :notice
     and target = :target
     and number = :number
     and sent_at is null
  returning target
), failing as (
  insert into ops.failing_targets (target, since)
  select target, :now
    from finished
   where :problem::text is not null
  on conflict do nothing
)
delete from ops.failing_targets
 where target = :target
   and :problem::text is null;

-- name: listTargetChanges
-- The targets that have failed since :since and whose failure was not notified, and those whose failure was, and is over.
select target, true as fails
  from ops.failing_targets
 where since <= :since
   and target in (select jsonb_array_elements_text(:names::jsonb))
   and not exists (select from ops.notices n where n.about_target = target and n.key is not null and n.ended_at is null)
union all
select n.about_target, false
  from ops.notices n
 where n.key is not null
   and n.ended_at is null
   and n.about_target is not null
   and not exists (select
                     from ops.failing_targets f
                    where f.target = n.about_target
                      and f.target in (select jsonb_array_elements_text(:names::jsonb)))
 limit :limit;

-- name: listUnsent
-- The targets that have not taken everything, with why not.
select s.target, count(*) as count, max(n.created_at) as newest,
       (array_agg(s.problem order by n.created_at desc))[1] as problem
  from ops.notice_sends s
  join ops.notices n on n.id = s.notice_id
 where s.sent_at is null
   and s.problem is not null
   and n.ended_at is null
 group by s.target
 order by s.target
 limit :limit;

-- name: pruneNotices
-- Keeps what lasts, what a target of these is still to get, and the beginning of what is kept.
with gone as (
  delete from ops.failing_targets
   where target not in (select jsonb_array_elements_text(:names::jsonb))
), others as (
  delete from ops.notice_sends
   where sent_at is null
     and target not in (select jsonb_array_elements_text(:names::jsonb))
)
delete from ops.notices n
 where n.created_at < :before
   and (n.key is null or n.ended_at is not null)
   and not exists (select from ops.notices e where e.begin_id = n.id)
   and not exists (select
                     from ops.notice_sends s
                    where s.notice_id = n.id
                      and s.sent_at is null
                      and n.ended_at is null
                      and s.target in (select jsonb_array_elements_text(:names::jsonb)));

-- name: addNoticeTarget
-- Empty if the name is taken or there are :most.
insert into ops.notice_targets (name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at)
select :name, :kind, :host, :address, :token, :services, :levels, :quiet, :after_s, :remind_s, :now
 where (select count(*) from ops.notice_targets) < :most
on conflict do nothing
returning name;

-- name: setNoticeTarget
update ops.notice_targets
   set kind = :kind, host = :host, address = :address, token = :token, services = :services, levels = :levels,
       quiet = :quiet, after_s = :after_s, remind_s = :remind_s
 where name = :name;

-- name: removeNoticeTarget
-- With what it was still to get. Empty if it does not exist.
with removed as (
  delete from ops.notice_targets
   where name = :name
  returning name
), sends as (
  delete from ops.notice_sends s
   using removed
   where s.target = removed.name
), failing as (
  delete from ops.failing_targets f
   using removed
   where f.target = removed.name
)
select name
  from removed;

-- name: findNoticeTarget
-- Empty if it does not exist.
select name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at
  from ops.notice_targets
 where name = :name;

-- name: listNoticeTargets
select name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at
  from ops.notice_targets
 order by name
 limit :limit;

-- name: findNotice
-- Empty if it does not exist.
select n.id, n.created_at, n.key is not null as lasts, n.ended_at, n.begin_id, n.acknowledged_at, n.acknowledged_by,
       coalesce(n.session_id, e.session_id) as session_id, coalesce(e.level, 'critical') as level,
       coalesce(e.service, 'gatehouse') as service,
       coalesce(e.message, 'Session ' || n.session_id || ' ' || s.status) as message
  from ops.notices n
  left join ops.events e on e.id = n.event_id
  left join ops.sessions s on s.id = n.session_id
 where n.id = :id;

-- name: listSends
-- What each target got of a notice, reminders last.
select target, number, attempts, sent_at, problem
  from ops.notice_sends
 where notice_id = :notice
 order by number desc, target
 limit :limit;

-- name: acknowledgeNotice
-- Of what lasts. Empty if it is over, was acknowledged before, or does not last.
update ops.notices
   set acknowledged_at = :now, acknowledged_by = :by
 where id = :id
   and key is not null
   and ended_at is null
   and acknowledged_at is null
returning id;
