-- name: lockAlerts
-- Only one delivery is decided at a time: each sees the outcome of the one before.
select pg_advisory_xact_lock(7203008);

-- name: findEarlier
-- What the next delivery of an alert meets, with the newest session that looked into it. Empty before the first delivery.
select a.id, a.outcome, a.state, a.firing_since, s.id as session_id, s.started_at as session_at
  from ops.alerts a
  left join lateral (
    select id, started_at
      from ops.sessions
     where alert_id = a.id
     order by id desc
     limit 1
  ) s on true
 where a.fingerprint = :fingerprint;

-- name: countInProgress
-- How many alerts wait, and how many are being read.
select (count(*) filter (where outcome = 'waiting'))::integer as waiting,
       (count(*) filter (where outcome = 'received'))::integer as reading
  from ops.alerts
 where outcome in ('received', 'waiting');

-- name: saveAlert
-- Keeps a delivery, and each different text of its alert once, by `content`. `count` is the number of this delivery. An
-- alert that was resolved and fires again begins a new firing. The outcome of an earlier delivery stays.
with saved as (
  insert into ops.alerts (fingerprint, source, service, labels, content, first_seen, last_seen, state, firing_since,
                          resolved_at, outcome)
  values (:fingerprint, :source, :service, :labels, :content, :now, :now, :state, :firing_since,
          greatest(:resolved_at::timestamptz, case when :resolved_at::timestamptz is not null then :firing_since::timestamptz end),
          'received')
  on conflict on constraint alerts_fingerprint do update
     set source = excluded.source, service = excluded.service, labels = excluded.labels, content = excluded.content,
         count = ops.alerts.count + 1, last_seen = greatest(ops.alerts.last_seen, excluded.last_seen),
         state = excluded.state,
         firings = ops.alerts.firings + (ops.alerts.state = 'resolved' and excluded.state = 'firing')::integer,
         firing_since = case when ops.alerts.state = 'resolved' and excluded.state = 'firing'
                             then excluded.firing_since
                             else ops.alerts.firing_since end,
         resolved_at = case when excluded.state = 'resolved'
                            then coalesce(ops.alerts.resolved_at,
                                          greatest(excluded.resolved_at, ops.alerts.firing_since)) end
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

-- name: setOutcome
-- What becomes of the newest delivery of an alert. The outcome of an earlier one is overwritten.
update ops.alerts
   set outcome = :outcome, problem = null, tier = :tier, reading = count, waiting_since = :waiting_since, due_at = :due_at,
       silence_id = :silence, holder = :holder, machine = :machine, reading_since = now()
 where id = :id;

-- name: noteAlert
-- Changes nothing once there is a newer delivery, or another process reads the alert.
update ops.alerts
   set outcome = :outcome, problem = :problem,
       waiting_since = case when :outcome = 'waiting' then coalesce(waiting_since, :now) end,
       due_at = case when :outcome = 'waiting' then coalesce(due_at, :now) end
 where id = :id
   and reading = :reading
   and holder = :holder
   and machine = :machine;

-- name: readFullQueue
select queue_full_since
  from ops.settings;

-- name: beginFullQueue
-- Empty when it was full before.
update ops.settings
   set queue_full_since = :now
 where queue_full_since is null
returning queue_full_since;

-- name: endFullQueue
-- Empty when it was not full, or :most alerts or more still wait.
update ops.settings
   set queue_full_since = null
 where queue_full_since is not null
   and (select count(*) from ops.alerts where outcome = 'waiting') < :most
returning only_row;

-- name: findOutcome
-- No row if no alert has this id.
select outcome
  from ops.alerts
 where id = :id;

-- name: takeWaiting
-- Takes the alert that has waited longest, to be read by this process, under the lock of deliveries. Empty while a session
-- runs, while another of them is read (its session is the next one), and when none is due. One due in over a day was put
-- there by a clock that was set back since.
update ops.alerts a
   set outcome = 'received', holder = :holder, machine = :machine, reading_since = now()
  from ops.alert_texts t
 where a.id = (select id
                 from ops.alerts
                where outcome = 'waiting'
                  and (due_at <= :now or due_at > :now::timestamptz + interval '25 hours')
                order by waiting_since, id
                limit 1)
   and not exists (select from ops.sessions where status = 'running')
   and not exists (select from ops.alerts where outcome = 'received' and waiting_since is not null)
   and t.alert_id = a.id
   and t.content = a.content
returning a.id, a.reading, a.tier, a.waiting_since, a.source, a.service, a.labels, t.title, t.payload;

-- name: holdBack
-- A silence holds an alert back that is being read.
update ops.alerts
   set outcome = 'silenced', waiting_since = null, due_at = null, silence_id = :silence
 where id = :id
   and reading = :reading
   and outcome = 'received'
   and holder = :holder
   and machine = :machine;

-- name: listUnsilenced
-- Alerts that still fire and whose silence is over, oldest first.
select a.id, a.silence_id, a.source, a.service, a.labels, t.title
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where a.outcome = 'silenced'
   and a.state = 'firing'
   and not exists (select
                     from ops.silences s
                    where s.id = a.silence_id
                      and s.starts_at <= :now
                      and s.ends_at > :now)
 order by a.id
 limit :limit;

-- name: releaseAlert
-- Has an alert wait whose silence is over, or gives it the next silence. Without effect when another instance has.
update ops.alerts
   set outcome = case when :next::bigint is null then 'waiting' else 'silenced' end, silence_id = :next,
       waiting_since = case when :next::bigint is null then :now::timestamptz end,
       due_at = case when :next::bigint is null then :now::timestamptz end
 where id = :id
   and outcome = 'silenced'
   and silence_id is not distinct from :silence;

-- name: claimTelling
-- Notes that operators are notified of an alert without a brief. Empty when they were within a day.
update ops.alerts
   set told_at = :now
 where id = :id
   and (told_at is null or told_at not between :now::timestamptz - interval '1 day' and :now)
returning id;

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
returning a.id, a.reading, a.tier, a.waiting_since, a.source, a.service, a.labels, t.title, t.payload;

-- name: listAlerts
-- Latest delivery first, each with the beginning of its payload; a filter that is null matches all.
select a.id, a.fingerprint, a.source, a.service, a.labels, t.title, left(t.payload, :characters) as payload, a.count, a.first_seen, a.last_seen,
       a.state, a.firing_since, a.resolved_at, a.firings, a.outcome, a.problem, a.due_at,
       (select max(s.id) from ops.sessions s where s.alert_id = a.id) as session_id,
       (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts, length(t.payload) as length
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where (:state::text is null or a.state = :state)
   and (:service::text is null or a.service = :service)
 order by a.last_seen desc, a.id desc
offset :offset
 limit :limit;

-- name: pageAlerts
-- Latest delivery first, those after the alert with this time and id, each with the beginning of its payload; a filter
-- that is null matches all.
select a.id, a.fingerprint, a.source, a.service, a.labels, t.title, left(t.payload, :characters) as payload, a.count, a.first_seen, a.last_seen,
       a.state, a.firing_since, a.resolved_at, a.firings, a.outcome, a.problem, a.due_at,
       (select max(s.id) from ops.sessions s where s.alert_id = a.id) as session_id,
       (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts, length(t.payload) as length
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where (a.last_seen, a.id) < (:at::timestamptz, :id::bigint)
   and (:state::text is null or a.state = :state)
   and (:service::text is null or a.service = :service)
 order by a.last_seen desc, a.id desc
 limit :limit;

-- name: countAlerts
-- Counts no further than the limit.
select count(*) as count
  from (select
          from ops.alerts
         where (:state::text is null or state = :state)
           and (:service::text is null or service = :service)
         limit :limit) found;

-- name: findAlert
-- No row if no alert has this id.
select a.id, a.fingerprint, a.source, a.service, a.labels, t.title, t.payload, a.count, a.first_seen, a.last_seen,
       a.state, a.firing_since, a.resolved_at, a.firings, a.outcome, a.problem, a.due_at,
       (select max(s.id) from ops.sessions s where s.alert_id = a.id) as session_id,
       (select count(*) from ops.alert_texts o where o.alert_id = a.id) as texts, length(t.payload) as length
  from ops.alerts a
  join ops.alert_texts t on t.alert_id = a.id and t.content = a.content
 where a.id = :id;

-- name: pageAlertTexts
-- Latest first, those after the text with this time and number, each with the beginning of its payload.
select title, left(payload, :characters) as payload, length(payload) as length, count, first_seen, last_seen, number
  from ops.alert_texts
 where alert_id = :alert
   and (last_seen, number) < (:at::timestamptz, :number::bigint)
 order by last_seen desc, number desc
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
