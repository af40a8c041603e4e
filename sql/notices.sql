-- name: lockNotices
-- Serializes those that may find the same beginning or end.
select pg_advisory_xact_lock(7203007);

-- name: addNotice
-- Adds a notice. With a key it tells of something that lasts. Empty if that has a notice already: of several instances
-- one tells of it.
insert into notices.notices (service, level, message, site, path, session_id, created_at, key, about_target)
values (:service, :level, :message, :site, :path, :session, :now, :key, :about_target)
on conflict (key) where ended_at is null do nothing
returning id;

-- name: endNotice
-- Adds the notice that something has ended. Without effect if its beginning has no notice.
with ended as (
  update notices.notices
     set ended_at = :now
   where key = :key
     and ended_at is null
  returning id, service, site, path, about_target
)
insert into notices.notices (service, level, message, site, path, session_id, created_at, begin_id, about_target)
select service, 'info', :message, site, path, :session, :now, id, about_target
  from ended;

-- name: listLasting
-- The notices of what still lasts whose keys begin with :prefix.
select key, message
  from notices.notices
 where ended_at is null
   and starts_with(key, :prefix)
 order by key
 limit :limit;

-- name: countNotices
-- How many notices a session has sent, and whether one since :since told the same words of the same service.
select (select count(*)
          from notices.notices
         where session_id = :session
           and kind = 'event') as notices,
       exists (select
                 from notices.notices
                where service = coalesce(:service, 'gatehouse')
                  and message = :message
                  and created_at >= :since) as same;

-- name: planSends
-- Plans what the targets get: what came since their time, what lasts for as long as they ask, and the end of it. A
-- beginning that is over is no news: only its end is.
insert into notices.sends (notice_id, target, next_at)
select n.id, t.name, :now
  from jsonb_to_recordset(:targets::jsonb)
    as t(name text, since timestamptz, services jsonb, levels jsonb, after_s integer)
  join notices.notices n on n.created_at >= t.since
  left join lateral (select level, created_at, ended_at, id from notices.notices where id = n.begin_id offset 0) b on true
 where n.about_target is distinct from t.name
   and n.ended_at is null
   and (t.services is null or t.services @> to_jsonb(n.service))
   and (t.levels is null or t.levels @> to_jsonb(coalesce(b.level, n.level)))
   and (t.after_s = 0 or n.key is null or n.created_at <= :now::timestamptz - t.after_s * interval '1 s')
   and (t.after_s = 0 or b.id is null or b.ended_at >= b.created_at + t.after_s * interval '1 s'
        or exists (select from notices.sends s where s.notice_id = b.id and s.target = t.name))
   and not exists (select
                     from notices.sends s
                    where s.notice_id = n.id
                      and s.target = t.name)
on conflict do nothing;

-- name: planReminders
-- Plans reminders of failures that last, until somebody acknowledges them. The newest send to each target is
-- looked up for each notice: few notices last. For a join the planner would expect many, and read all sends.
insert into notices.sends (notice_id, target, number, next_at)
select n.id, t.name, newest.number + 1, :now
  from jsonb_to_recordset(:targets::jsonb) as t(name text, remind_s integer)
 cross join notices.notices n
 cross join lateral (
       select number, sent_at
         from notices.sends
        where notice_id = n.id
          and target = t.name
        order by number desc
        limit 1
       ) newest
 where n.key is not null
   and n.ended_at is null
   and n.acknowledged_at is null
   and newest.sent_at <= :now::timestamptz - t.remind_s * interval '1 s'
on conflict do nothing;

-- name: planAcknowledgements
-- Plans to tell these targets, once each, that somebody has acknowledged a notice which they got.
insert into notices.sends (notice_id, target, number, next_at)
select s.notice_id, s.target, -1, :now
  from notices.sends s
  join notices.notices n on n.id = s.notice_id
 where s.target in (select jsonb_array_elements_text(:targets::jsonb))
   and s.number = 0
   and s.sent_at is not null
   and n.key is not null
   and n.ended_at is null
   and n.acknowledged_at is not null
   and not exists (select
                     from notices.sends a
                    where a.notice_id = s.notice_id
                      and a.target = s.target
                      and a.number = -1)
on conflict do nothing;

-- name: hasDue
-- Whether a target is to get something now that its pace lets through. A time over an hour ahead was set by a clock that
-- was set back since.
select exists (select
                 from notices.sends s
                 join notices.notices n on n.id = s.notice_id
                where s.target = :target
                  and s.sent_at is null
                  and (s.next_at <= :now or s.next_at > :now::timestamptz + interval '61 minutes')
                  and n.ended_at is null
                  and (s.number <= 0 or n.acknowledged_at is null)
                  and not exists (select
                                    from notices.paces p
                                   where p.target = s.target
                                     and p.stage = notices.stage_of(s.number, n.begin_id)
                                     and p.next_at > :now
                                     and p.next_at < :now::timestamptz + interval '61 minutes')) as due;

-- name: lockTarget
-- Until the transaction ends no other instance chooses what this target gets next.
select pg_advisory_xact_lock(7203008, hashtext(:target));

-- name: listPaces
select stage, next_at, alone, incident
  from notices.paces
 where target = :target
 limit :limit;

-- name: listDue
-- What a target is to get now, the oldest first. What is due in over an hour was scheduled by a clock that was set back
-- since. In quiet hours only what is, or was, critical. The end of one of several that share an incident waits for the
-- last of them.
select n.id, n.kind, n.session_id, n.level, n.service, n.message, n.site, n.path, n.created_at,
       n.key is not null as lasts, n.begin_id, s.number, notices.stage_of(s.number, n.begin_id) as stage,
       coalesce(b.key, n.key) as key, coalesce(told.incident, n.begin_id, n.id) as incident
  from notices.sends s
  join notices.notices n on n.id = s.notice_id
  left join notices.notices b on b.id = n.begin_id
  left join notices.sends told
    on told.notice_id = coalesce(n.begin_id, n.id) and told.target = s.target and told.number = 0
 where s.target = :target
   and s.sent_at is null
   and (s.next_at <= :now or s.next_at > :now::timestamptz + interval '61 minutes')
   and n.ended_at is null
   and (s.number <= 0 or n.acknowledged_at is null)
   and (not :quiet::boolean or coalesce(b.level, n.level) = 'critical')
   and (n.begin_id is null
        or not exists (select
                         from notices.sends o
                         join notices.notices lasting on lasting.id = o.notice_id
                        where o.target = s.target
                          and o.incident = told.incident
                          and lasting.ended_at is null))
 order by s.next_at, s.notice_id
 limit :limit;

-- name: claimSends
-- Claims these for one attempt and schedules the next one: after 10 s, 20 s, 40 s, at most an hour.
update notices.sends s
   set attempts = s.attempts + 1,
       incident = :incident,
       next_at = :now::timestamptz + least(interval '1 hour', interval '10 seconds' * power(2, least(s.attempts, 9)))
  from jsonb_to_recordset(:sends::jsonb) as c(id bigint, number integer)
 where s.target = :target
   and s.notice_id = c.id
   and s.number = c.number;

-- name: setPace
insert into notices.paces (target, stage, next_at, alone, incident)
values (:target, :stage, :next_at, :alone, :incident)
on conflict (target, stage) do update
   set next_at = excluded.next_at, alone = excluded.alone, incident = excluded.incident;

-- name: finishSends
-- Notes that these were sent, or the :problem. A target that was removed meanwhile does not fail, and what another
-- instance has sent meanwhile stays sent. After a failure nothing is tried before :next_at, for which its receiver may
-- have asked.
with finished as (
  update notices.sends s
     set sent_at = case when :problem::text is null then :now::timestamptz end, problem = :problem
    from jsonb_to_recordset(:sends::jsonb) as c(id bigint, number integer)
   where s.target = :target
     and s.notice_id = c.id
     and s.number = c.number
     and s.sent_at is null
  returning s.target
), failing as (
  insert into notices.failing_targets (target, since)
  select distinct target, :now::timestamptz
    from finished
   where :problem::text is not null
  on conflict do nothing
), paced as (
  update notices.paces
     set next_at = :next_at, alone = 0
   where target = :target
     and :problem::text is not null
)
delete from notices.failing_targets
 where target = :target
   and :problem::text is null;

-- name: listFailingTargets
-- Those of these names that have failed since :since.
select target
  from notices.failing_targets
 where since <= :since
   and target in (select jsonb_array_elements_text(:names::jsonb))
 order by target
 limit :limit;

-- name: listUnsent
-- The targets that have not taken everything, with why not.
select s.target, count(*) as count, max(n.created_at) as newest,
       (array_agg(s.problem order by n.created_at desc))[1] as problem
  from notices.sends s
  join notices.notices n on n.id = s.notice_id
 where s.sent_at is null
   and s.problem is not null
   and n.ended_at is null
   and (s.number <= 0 or n.acknowledged_at is null)
 group by s.target
 order by s.target
 limit :limit;

-- name: pruneNotices
-- Keeps what lasts, what a target is still to get, and the beginning of what is kept.
with gone as (
  select n.id
    from notices.notices n
   where n.created_at < :before
     and (n.key is null or n.ended_at is not null)
     and not exists (select from notices.notices e where e.begin_id = n.id)
     and not exists (select
                       from notices.sends s
                      where s.notice_id = n.id
                        and s.sent_at is null
                        and n.ended_at is null)
   order by n.created_at
   limit :limit
), removed as (
  delete from notices.notices where id in (select id from gone) returning id
)
select count(*)::integer as removed from removed;

-- name: forgetTargets
-- What targets that are not among these are still to get, and since when they fail.
with gone as (
  delete from notices.failing_targets
   where target not in (select jsonb_array_elements_text(:names::jsonb))
), paces as (
  delete from notices.paces
   where target not in (select jsonb_array_elements_text(:names::jsonb))
)
delete from notices.sends
 where sent_at is null
   and target not in (select jsonb_array_elements_text(:names::jsonb));

-- name: addNoticeTarget
-- Empty if the name is taken or there are :most.
insert into notices.targets (name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at)
select :name, :kind, :host, :address, :token, :services, :levels, :quiet, :after_s, :remind_s, :now
 where (select count(*) from notices.targets) < :most
on conflict do nothing
returning name;

-- name: setNoticeTarget
update notices.targets
   set kind = :kind, host = :host, address = :address, token = :token, services = :services, levels = :levels,
       quiet = :quiet, after_s = :after_s, remind_s = :remind_s
 where name = :name;

-- name: removeNoticeTarget
-- With what it was still to get. Empty if it does not exist.
with removed as (
  delete from notices.targets
   where name = :name
  returning name
), sends as (
  delete from notices.sends s
   using removed
   where s.target = removed.name
), failing as (
  delete from notices.failing_targets f
   using removed
   where f.target = removed.name
), paces as (
  delete from notices.paces p
   using removed
   where p.target = removed.name
)
select name
  from removed;

-- name: findNoticeTarget
-- Empty if it does not exist.
select name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at
  from notices.targets
 where name = :name;

-- name: listNoticeTargets
select name, kind, host, address, token, services, levels, quiet, after_s, remind_s, created_at
  from notices.targets
 order by name
 limit :limit;

-- name: findNotice
-- Empty if it does not exist.
select id, kind, session_id, level, service, message, site, path, created_at, key is not null as lasts, ended_at,
       begin_id, acknowledged_at, acknowledged_by
  from notices.notices
 where id = :id;

-- name: listNotices
-- Newest first.
select id, kind, session_id, level, service, message, site, path, created_at, key is not null as lasts, ended_at,
       begin_id, acknowledged_at, acknowledged_by
  from notices.notices
 order by created_at desc, id desc
offset :offset
 limit :limit;

-- name: listLastingNotices
-- Those alone that last, newest first.
select id, kind, session_id, level, service, message, site, path, created_at, true as lasts, ended_at,
       begin_id, acknowledged_at, acknowledged_by
  from notices.notices
 where key is not null
   and ended_at is null
 order by created_at desc, id desc
offset :offset
 limit :limit;

-- name: pageNotices
-- Newest first, those after the notice with this time and id.
select id, kind, session_id, level, service, message, site, path, created_at, key is not null as lasts, ended_at,
       begin_id, acknowledged_at, acknowledged_by
  from notices.notices
 where (created_at, id) < (:at::timestamptz, :id::bigint)
 order by created_at desc, id desc
 limit :limit;

-- name: listSendsOf
-- What each target got of these notices, the newest send of each.
select distinct on (notice_id, target) notice_id, target, number, attempts, sent_at, problem
  from notices.sends
 where notice_id in (select jsonb_array_elements_text(:notices::jsonb)::bigint)
 order by notice_id, target, number desc
 limit :limit;

-- name: readTargetStates
-- What is known of each of these targets: when it last took a notice, how many wait, and why the last try failed, if it
-- did.
select t.target, f.since as failing_since,
       (select max(sent_at) from notices.sends where target = t.target) as taken_at,
       (select count(*)
          from notices.sends s
          join notices.notices n on n.id = s.notice_id
         where s.target = t.target
           and s.sent_at is null
           and n.ended_at is null
           and (s.number <= 0 or n.acknowledged_at is null)) as waiting,
       (select s.problem
          from notices.sends s
         where s.target = f.target
           and s.sent_at is null
           and s.problem is not null
         order by s.next_at desc
         limit 1) as problem
  from jsonb_array_elements_text(:names::jsonb) as t(target)
  left join notices.failing_targets f on f.target = t.target
 limit :limit;

-- name: listSends
-- What each target got of a notice, the newest reminders first.
select target, number, attempts, sent_at, problem
  from notices.sends
 where notice_id = :notice
 order by number desc, target
 limit :limit;

-- name: acknowledgeNotice
-- Of what lasts. Empty if it is over, was acknowledged before, or does not last.
update notices.notices
   set acknowledged_at = :now, acknowledged_by = :by
 where id = :id
   and key is not null
   and ended_at is null
   and acknowledged_at is null
returning id;
