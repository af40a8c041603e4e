-- name: lockStarts
-- Serializes starts across instances, so that each start sees the session of the previous one.
select pg_advisory_xact_lock(7203004);

-- name: startSession
-- Tells every instance. Empty while another session runs. The condition spares an id; the index sessions_one_running
-- decides between concurrent starts.
with started as (
  insert into ops.sessions (tier, model, trigger, prompt_text, status, started_at, heartbeat_at, parent_session_id,
                            chain_id, alert_id, holder, machine)
  select :tier, :model, :trigger, :prompt_text, 'running', :now, clock_timestamp(), :parent_session_id,
         (select coalesce(chain_id, id) from ops.sessions where id = :parent_session_id),
         coalesce(:alert::bigint, (select alert_id from ops.sessions where id = :parent_session_id)), :holder, :machine
   where not exists (select from ops.sessions where status = 'running')
  on conflict do nothing
  returning id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
            parent_session_id, duration_ms, marker::text
), counted as (
  insert into ops.session_counts (day, sessions, cost_usd)
  select (started_at at time zone 'UTC')::date, 1, 0
    from started
  on conflict (day) do update
     set sessions = ops.session_counts.sessions + 1
)
select started.*
  from started, pg_notify('ops_sessions', '');

-- name: renewLease
-- Also keeps what the session has cost so far: a crash must not hide it from the budgets. Empty when the session has
-- ended or has another holder.
update ops.sessions
   set heartbeat_at = clock_timestamp(), cost_usd = :cost_usd
 where id = :id
   and holder = :holder
   and status = 'running'
returning stop_asked;

-- name: finishSession
-- Tells every instance. Operators are notified of one that failed or ran out of time, in the words of its event. Empty
-- when the session has ended already, for example because its lease expired.
with ended as (
  update ops.sessions
     set status = :status, ended_at = :now, exit_code = :exit_code, cost_usd = :cost_usd,
         num_turns = :num_turns, tool_calls = :tool_calls, summary = :summary,
         duration_ms = greatest(0, extract(epoch from :now - started_at) * 1000)::bigint
   where id = :id
     and holder = :holder
     and status = 'running'
  returning id, status, started_at, ended_at, cost_usd
), counted as (
  insert into ops.session_counts (day, sessions, cost_usd)
  select (started_at at time zone 'UTC')::date, 0, coalesce(cost_usd, 0)
    from ended
  on conflict (day) do update
     set cost_usd = ops.session_counts.cost_usd + excluded.cost_usd
), due as (
  insert into notices.notices (kind, service, level, message, site, path, session_id, created_at)
  select 'session', 'gatehouse', 'critical',
         coalesce((select message
                     from ops.events
                    where session_id = ended.id
                      and service = 'gatehouse'
                    order by id desc
                    limit 1), 'Session ' || id || ' ' || status),
         'ops', '/sessions/' || id, id, ended_at
    from ended
   where status in ('failed', 'timed_out')
)
select id
  from ended, pg_notify('ops_sessions', '');

-- name: askToStop
-- Tells every instance. Empty when the session does not run.
with asked as (
  update ops.sessions
     set stop_asked = true
   where id = :id
     and status = 'running'
  returning id
)
select id
  from asked, pg_notify('ops_sessions', '');

-- name: findLease
-- The lease of the running session, and for how long it was not renewed; empty when none runs.
select id, marker::text, holder, machine, heartbeat_at,
       (extract(epoch from clock_timestamp() - heartbeat_at) * 1000)::float8 as silent_ms
  from ops.sessions
 where status = 'running';

-- name: failLapsed
-- Fails a session whose holder is gone, and tells every instance. Its critical event is its notice. Empty when the
-- lease was renewed after :heartbeat_at, or the session has ended.
with failed as (
  update ops.sessions
     set status = 'failed', ended_at = :now, exit_code = 1,
         duration_ms = greatest(0, extract(epoch from :now - started_at) * 1000)::bigint
   where id = :id
     and status = 'running'
     and heartbeat_at <= :heartbeat_at
  returning id, started_at, cost_usd
), counted as (
  insert into ops.session_counts (day, sessions, cost_usd)
  select (started_at at time zone 'UTC')::date, 0, coalesce(cost_usd, 0)
    from failed
  on conflict (day) do update
     set cost_usd = ops.session_counts.cost_usd + excluded.cost_usd
)
select id
  from failed, pg_notify('ops_sessions', '');

-- name: readSessionState
-- The id of the newest session, 0 before the first one, and whether a session runs.
select coalesce((select max(id) from ops.sessions), 0) as newest,
       exists (select from ops.sessions where status = 'running') as running;

-- name: findRunning
-- Empty when no session runs.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 where status = 'running';

-- name: findSession
-- No row if no session has this id.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms, tool_calls, summary, marker::text,
       (select coalesce(sum(c.cost_usd), 0)
          from ops.sessions c
         where c.id = coalesce(s.chain_id, s.id)
            or c.chain_id = coalesce(s.chain_id, s.id)) as chain_cost
  from ops.sessions s
 where id = :id;

-- name: findStatus
-- No row if no session has this id.
select status
  from ops.sessions
 where id = :id;

-- name: listSessions
-- Newest first; a filter that is null matches all.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 where (:status::text is null or status = :status)
   and (:trigger::text is null or trigger = :trigger)
 order by started_at desc, id desc
offset :offset
 limit :limit;

-- name: pageChains
-- Escalation chains, newest first, each at its newest session that matches; a session that did not escalate is a chain
-- of its own. They are those after the session with the time :at and the id. A filter that is null matches all. `offset 0`
-- has the chain of each session looked up: the planner would compare each session with all that match.
select s.id, s.started_at, coalesce(s.chain_id, s.id) as chain
  from ops.sessions s
 where (s.started_at, s.id) < (least(:at::timestamptz, :until::timestamptz),
                               case when :at::timestamptz < :until then :id::bigint else 0 end)
   and s.started_at >= :since
   and (:status::text is null or s.status = :status)
   and (:trigger::text is null or s.trigger = :trigger)
   and not exists (select
                     from (select status, trigger, started_at
                             from ops.sessions
                            where chain_id = coalesce(s.chain_id, s.id)
                              and id > s.id
                           offset 0) n
                    where n.started_at < :until
                      and (:status::text is null or n.status = :status)
                      and (:trigger::text is null or n.trigger = :trigger))
 order by s.started_at desc, s.id desc
 limit :limit;

-- name: listMembers
-- The sessions of chains, oldest first.
select c.id, c.tier, c.model, c.status, c.started_at, c.ended_at, c.exit_code, c.cost_usd, c.num_turns, c.trigger,
       c.prompt_text, c.parent_session_id, c.duration_ms, given.id::bigint as chain
  from jsonb_array_elements_text(:chains::jsonb) as given(id)
  join ops.sessions c on c.id = given.id::bigint or c.chain_id = given.id::bigint
 order by c.id
 limit :limit;

-- name: sumSessions
-- Counts no further than the limit. The cost is null where none is known.
select count(*) as sessions, sum(cost_usd) as cost_usd,
       count(*) filter (where status in ('failed', 'timed_out')) as failed
  from (select cost_usd, status
          from ops.sessions
         where started_at >= :since
           and started_at < :until
           and (:status::text is null or status = :status)
           and (:trigger::text is null or trigger = :trigger)
         order by started_at desc
         limit :limit) found;

-- name: listChildren
-- The sessions that one escalated to, oldest first.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 where parent_session_id = :id
 order by id
 limit :limit;

-- name: listChain
-- The whole escalation chain of a session, oldest first.
select c.id, c.tier, c.model, c.status, c.started_at, c.ended_at, c.exit_code, c.cost_usd, c.num_turns, c.trigger,
       c.prompt_text, c.parent_session_id, c.duration_ms
  from ops.sessions s
  join ops.sessions c on c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id)
 where s.id = :id
 order by c.id
 limit :limit;

-- name: costSince
-- The cost of all sessions and alert briefs since midnight :since.
select (select coalesce(sum(cost_usd), 0)
          from ops.sessions
         where started_at >= :since)
     + (select coalesce(sum(cost_usd), 0)
          from ops.brief_costs
         where day >= (:since::timestamptz at time zone 'UTC')::date) as cost_usd;

-- name: chainCost
-- The cost of the escalation chain of a session.
select coalesce(sum(c.cost_usd), 0) as cost_usd
  from ops.sessions s
  join ops.sessions c on c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id)
 where s.id = :id;

-- name: claimSchedule
-- Claims the scheduled session for one instance. Empty when another one was claimed after :since. A claim after :ahead
-- does not count: the clock was set back. When :again, the claim made at :at is found, whose answer may have been lost.
update ops.settings
   set scheduled_at = :at
 where scheduled_at is null
    or scheduled_at < :since
    or scheduled_at > :ahead
    or (:again and scheduled_at = :at)
returning scheduled_at;

-- name: saveLines
-- Stores a JSON array of lines, and notifies the followers of the session.
with saved as (
  insert into ops.session_lines (session_id, seq, at, kind, text, call)
  select :session, line.seq, line.at, line.kind, line.text, line.call
    from jsonb_to_recordset(:lines::jsonb) as line(seq integer, at timestamptz, kind text, text text, call integer)
  on conflict (session_id, seq) do nothing
)
select pg_notify('ops_lines', :session::bigint::text);

-- name: listLines
select seq, at, kind, text
  from ops.session_lines
 where session_id = :session
   and seq > :after
 order by seq
 limit :limit;

-- name: listLinesBefore
-- Newest first.
select seq, at, kind, text
  from ops.session_lines
 where session_id = :session
   and seq < :before
 order by seq desc
 limit :limit;

-- name: listOtherLines
-- The lines that are of no tool call, newest first.
select seq, at, kind, text, call
  from ops.session_lines
 where session_id = :session
   and call is null
 order by seq desc
 limit :limit;

-- name: listCallLines
-- The first lines of the newest tool calls, each cut to :characters characters, in their order.
with newest as (
  select coalesce(max(call), 0) as call
    from ops.session_lines
   where session_id = :session
)
select l.seq, l.at, l.kind, left(l.text, :characters) as text, l.call, length(l.text) > :characters as cut
  from newest
 cross join generate_series(greatest(newest.call - :calls::integer + 1, 1), newest.call) as numbers(call)
 cross join lateral (
   select seq, at, kind, text, call
     from ops.session_lines
    where session_id = :session
      and call = numbers.call
    order by seq
    limit :each
 ) l
 order by l.seq
 limit :limit;

-- name: listLinesOfCall
-- The lines of one tool call, in their order; no row if the call does not exist.
select seq, at, kind, text, call
  from ops.session_lines
 where session_id = :session
   and call = :call
 order by seq
 limit :limit;

-- name: findSummary
-- The newest summary. Empty before the first one.
select id, ended_at, summary
  from ops.sessions
 where summary is not null
   and ended_at is not null
 order by started_at desc, id desc
 limit 1;

-- name: listDays
-- Sessions, their cost with that of briefs, and events of each day in UTC. `since` is the beginning of a day. The counts lack
-- what the running session has cost so far.
with running as (
  select (started_at at time zone 'UTC')::date as day, cost_usd
    from ops.sessions
   where status = 'running'
), briefs as (
  select day, cost_usd
    from ops.brief_costs
   where day >= (:since::timestamptz at time zone 'UTC')::date
)
select to_char(day, 'YYYY-MM-DD') as day, coalesce(s.sessions, 0) as sessions,
       coalesce(s.cost_usd, 0) + coalesce(r.cost_usd, 0) + coalesce(b.cost_usd, 0) as cost_usd,
       coalesce(e.events, 0) as events
  from (select at::date as day
          from generate_series(:since::timestamptz at time zone 'UTC', :until::timestamptz at time zone 'UTC',
                               interval '1 day') at) days
  left join ops.session_counts s using (day)
  left join running r using (day)
  left join ops.event_counts e using (day)
  left join briefs b using (day)
 order by 1
 limit :limit;

-- name: noteSession
-- A session looks into an alert. The outcome of one that is being read is noted by its reader.
update ops.alerts
   set outcome = 'triggered', problem = null, waiting_since = null, due_at = null
 where id = :id
   and outcome <> 'received';

-- name: reopenAlert
-- Has the alert of a session read again, by whichever process comes first, if it began the chain of the session. One whose
-- end was delivered meanwhile is over.
update ops.alerts a
   set outcome = 'received', problem = :problem, holder = '', machine = ''
  from ops.sessions s
  join ops.sessions first on first.id = coalesce(s.chain_id, s.id)
 where s.id = :session
   and first.trigger = 'alert'
   and a.id = s.alert_id
   and a.outcome <> 'resolved';

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

-- name: findRecallOf
-- The alert that a session looks into, and the first session of its chain: earlier ones are not of it. Empty when it was
-- not started for an alert.
select a.id, a.firings, a.first_seen, coalesce(s.chain_id, s.id) as chain
  from ops.sessions s
  join ops.alerts a on a.id = s.alert_id
 where s.id = :session;

-- name: listAlertSessions
-- The sessions that looked into an alert, newest first, each with the beginning of its summary and what it ran.
select s.id, s.tier, s.model, s.status, s.trigger, s.started_at, s.ended_at, s.cost_usd, s.duration_ms, s.parent_session_id, left(s.summary, :characters) as summary,
       coalesce((select jsonb_agg(o.line order by o.id)
                   from (select c.id, c.service || '/' || c.operation || ': ' || coalesce(c.outcome, 'runs') as line
                           from ops.actions c
                          where c.session_id = s.id
                          order by c.id
                          limit 5) o), '[]') as operations
  from ops.sessions s
 where s.alert_id = :alert
   and (:before::bigint is null or s.id < :before)
 order by s.id desc
 limit :limit;

-- name: forgetSession
-- The failures that the chain of a session looks into wait again. How many they are.
with forgotten as (
  delete from ops.investigations i
   using ops.sessions s
   where s.id = :session
     and i.session_id = coalesce(s.chain_id, s.id)
  returning i.check_id
)
select count(*)::integer as checks from forgotten;
