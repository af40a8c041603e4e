-- name: readSeen
-- Events up to this time were seen by a person; null before the first "seen".
select seen_until
  from ops.settings;

-- name: markSeen
-- Never moves back: two people may press "seen" at the same time.
update ops.settings
   set seen_until = greatest(seen_until, :until);

-- name: listWaitingEvents
-- Newest first.
select id, session_id, level, service, message, created_at
  from ops.events
 where waits
   and created_at > :since
 order by created_at desc, id desc
 limit :limit;

-- name: listWaitingAlerts
-- Alerts that no session has looked into since their newest delivery, newest first. One that came while its session
-- ran, or one that this has escalated to, is looked into, unless that session ended with the server.
select a.id, t.title, a.source, a.outcome, a.problem, a.last_seen
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where a.outcome in ('acknowledged', 'failed')
   and a.last_seen > :since
   and not exists (select
                     from (select status, stop_asked, ended_at
                             from ops.sessions
                            where alert_id = a.id
                            order by id desc
                            limit 1) s
                    where s.ended_at is null
                       or (s.ended_at >= a.last_seen and (s.status <> 'stopped' or s.stop_asked)))
 order by a.last_seen desc, a.id desc
 limit :limit;

-- name: listWaitingSessions
-- Sessions that failed, ran out of time, or escalated while no tier followed, newest first. `problem` is their event.
select s.id, s.tier, s.status, s.ended_at,
       (select e.message
          from ops.events e
         where e.session_id = s.id
           and e.service = 'gatehouse'
         order by e.id desc
         limit 1) as problem
  from ops.sessions s
  left join lateral (select c.id from ops.sessions c where c.parent_session_id = s.id limit 1) next
    on s.status = 'escalated'
 where s.status in ('failed', 'timed_out', 'escalated')
   and s.ended_at > :since
   and next.id is null
 order by s.ended_at desc, s.id desc
 limit :limit;
