-- name: saveAlert
-- Keeps a delivery, and each different text of its alert once, by `content`. The outcome of an earlier delivery is
-- overwritten. `count` is the number of this delivery.
with saved as (
  insert into ops.alerts (fingerprint, source, content, first_seen, last_seen, outcome, tier, holder, machine,
                          reading_since)
  values (:fingerprint, :source, :content, :now, :now, :outcome, :tier, :holder, :machine, now())
  on conflict on constraint alerts_fingerprint do update
     set source = excluded.source, content = excluded.content, count = ops.alerts.count + 1,
         last_seen = greatest(ops.alerts.last_seen, excluded.last_seen), outcome = excluded.outcome, problem = null,
         tier = excluded.tier, holder = excluded.holder, machine = excluded.machine,
         reading_since = excluded.reading_since
  returning id, count
), kept as (
  insert into ops.alert_texts (alert_id, content, title, payload, first_seen, last_seen)
  select id, :content, :title, :payload, :now, :now
    from saved
  on conflict (alert_id, content) do update
     set title = excluded.title, payload = excluded.payload, count = ops.alert_texts.count + 1,
         last_seen = greatest(ops.alert_texts.last_seen, excluded.last_seen)
)
select id, count
  from saved;

-- name: noteAlert
-- Changes nothing once there is a newer delivery, or another process reads the alert.
update ops.alerts
   set outcome = :outcome, problem = :problem
 where id = :id
   and count = :count
   and holder = :holder
   and machine = :machine;

-- name: claimTelling
-- Notes that operators are notified of an alert without a brief. Empty when they were within a day.
update ops.alerts
   set told_at = :now
 where id = :id
   and (told_at is null or told_at not between :now::timestamptz - interval '1 day' and :now)
returning id;

-- name: linkSession
-- The outcome of an alert that is being read is noted by its reader.
update ops.alerts
   set session_id = :session,
       outcome = case when outcome = 'received' then outcome else 'triggered' end,
       problem = case when outcome = 'received' then problem end
 where id = :id;

-- name: reopenAlert
-- Has the alert of a session read again, by whichever process comes first, if it began the chain of the session.
update ops.alerts a
   set outcome = 'received', problem = :problem, holder = '', machine = ''
  from ops.sessions s
  join ops.sessions first on first.id = coalesce(s.chain_id, s.id)
 where s.id = :session
   and first.trigger = 'alert'
   and a.id = s.alert_id;

-- name: findSessionAlert
-- The alert that the chain of a session looks into. Empty when it was not started for one.
select t.title, a.source, t.payload
  from ops.sessions s
  join ops.alerts a on a.id = s.alert_id
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where s.id = :session;

-- name: findAlertOf
-- The same without its text. Empty when the session was not started for an alert.
select a.id, t.title
  from ops.sessions s
  join ops.alerts a on a.id = s.alert_id
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where s.id = :session;

-- name: listAlertsInProgress
-- Oldest first, each with how long it is being read.
select id, holder, machine, reading_since, (extract(epoch from now() - reading_since) * 1000)::float8 as reading_ms
  from ops.alerts
 where outcome = 'received'
 order by id
 limit :limit;

-- name: adoptAlert
-- Takes an alert over from another process. Empty when another process took it over, or it has an outcome.
update ops.alerts a
   set reading_since = now(), holder = :holder, machine = :machine
  from ops.alert_texts t
 where a.id = :id
   and a.reading_since = :reading_since
   and a.outcome = 'received'
   and t.alert_id = a.id
   and t.content = a.content
returning a.id, a.count, a.tier, t.title, t.payload;

-- name: listAlerts
-- Latest delivery first, each with the beginning of its payload.
select a.id, a.fingerprint, a.source, t.title, left(t.payload, :characters) as payload, a.count, a.first_seen,
       a.last_seen, a.outcome, a.problem, a.session_id,
       (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts, length(t.payload) as length
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 order by a.last_seen desc, a.id desc
offset :offset
 limit :limit;

-- name: countAlerts
-- Counts no further than the limit.
select count(*) as count
  from (select
          from ops.alerts
         limit :limit) found;

-- name: findAlert
-- No row if no alert has this id.
select a.id, a.fingerprint, a.source, t.title, t.payload, a.count, a.first_seen, a.last_seen, a.outcome, a.problem,
       a.session_id, (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts,
       length(t.payload) as length
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where a.id = :id;

-- name: listAlertTexts
-- Latest first, each with the beginning of its payload.
select title, left(payload, :characters) as payload, length(payload) as length, count, first_seen, last_seen
  from ops.alert_texts
 where alert_id = :alert
 order by last_seen desc, content
offset :offset
 limit :limit;

-- name: takeBriefLock
-- Takes the lock for writing a brief, for :ms milliseconds. A process that already holds it gets it again: the first
-- reply may have been lost. A lock that ends over a minute from now was taken by a clock that was set back since. Empty
-- while another process holds it.
update ops.settings
   set brief_holder = :holder, brief_machine = :machine, brief_until = now() + :ms * interval '1 millisecond'
 where brief_holder is null
    or (brief_holder = :holder and brief_machine = :machine)
    or brief_until <= now()
    or brief_until > now() + interval '1 minute'
returning brief_until;

-- name: freeBriefLock
update ops.settings
   set brief_holder = null, brief_machine = null, brief_until = null
 where brief_holder = :holder
   and brief_machine = :machine;

-- name: addBriefCost
insert into ops.brief_costs (day, cost_usd)
values ((:now::timestamptz at time zone 'UTC')::date, :cost_usd)
on conflict (day) do update
   set cost_usd = ops.brief_costs.cost_usd + excluded.cost_usd;
