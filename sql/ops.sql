-- name: lockStarts :exec
-- Sessions start one after the other, so that each start sees whether another one was just taken.
select pg_advisory_xact_lock(7203004);

-- name: startSession :optional
-- A session that begins at $5 and is run by $7 on machine $8. Empty while another one runs: a start that is refused
-- draws no id. The index sessions_one_running decides between starts on all instances.
insert into ops.sessions (tier, model, trigger, prompt_text, status, started_at, heartbeat_at, parent_session_id,
                          chain_id, holder, machine)
select $1, $2, $3, $4, 'running', $5, $5, $6, (select coalesce(chain_id, id) from ops.sessions where id = $6), $7, $8
 where not exists (select from ops.sessions where status = 'running')
on conflict do nothing
returning id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
          parent_session_id, duration_ms, marker::text;

-- name: renewLease :optional
-- The session $1 is still run by $2; says whether somebody asked it to stop. Empty when it is no longer this holder's.
update ops.sessions
   set heartbeat_at = $3
 where id = $1
   and holder = $2
   and status = 'running'
returning stop_asked;

-- name: finishSession :optional
-- The end of the session $1, told by its holder $2; of a failure, a notice is due at once. Empty when it has ended
-- already, as when its lease had lapsed.
with ended as (
  update ops.sessions
     set status = $3, ended_at = $4, exit_code = $5, cost_usd = $6, num_turns = $7, summary = $8,
         duration_ms = greatest(0, extract(epoch from $4 - started_at) * 1000)::bigint
   where id = $1
     and holder = $2
     and status = 'running'
  returning id, status, ended_at
), due as (
  insert into ops.notices (session_id, created_at, next_at)
  select id, ended_at, ended_at
    from ended
   where status = 'failed'
)
select id
  from ended;

-- name: askToStop :optional
-- Empty when no session $1 runs.
update ops.sessions
   set stop_asked = true
 where id = $1
   and status = 'running'
returning id;

-- name: findLease :optional
-- Who runs the session that runs; empty when none does.
select id, marker::text, holder, machine, heartbeat_at
  from ops.sessions
 where status = 'running';

-- name: failLapsed :optional
-- Fails the session $1, whose holder is gone, at $3; the critical event that goes with it is its notice. Empty when its lease was renewed after $2, or it has ended.
update ops.sessions
   set status = 'failed', ended_at = $3, exit_code = 1,
       duration_ms = greatest(0, extract(epoch from $3 - started_at) * 1000)::bigint
 where id = $1
   and status = 'running'
   and heartbeat_at <= $2
returning id;

-- name: lookAtSessions :one
-- The newest session, 0 before the first one, and whether one runs.
select coalesce((select max(id) from ops.sessions), 0) as newest,
       exists (select from ops.sessions where status = 'running') as running;

-- name: findRunning :optional
-- The session that runs; empty when none does.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 where status = 'running';

-- name: findSession :optional
-- Empty when there is no such session.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms, summary, marker::text,
       (select coalesce(sum(c.cost_usd), 0)
          from ops.sessions c
         where c.id = coalesce(s.chain_id, s.id)
            or c.chain_id = coalesce(s.chain_id, s.id)) as chain_cost
  from ops.sessions s
 where id = $1;

-- name: listSessions :many
-- Newest first, from row $1 on.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 order by started_at desc, id desc
offset $1
 limit $2;

-- name: listChildren :many
-- The sessions that session $1 escalated to, oldest first.
select id, tier, model, status, started_at, ended_at, exit_code, cost_usd, num_turns, trigger, prompt_text,
       parent_session_id, duration_ms
  from ops.sessions
 where parent_session_id = $1
 order by id
 limit $2;

-- name: costSince :one
-- What all sessions since $1, the beginning of a day, and the briefs of alerts have cost.
select (select coalesce(sum(cost_usd), 0)
          from ops.sessions
         where started_at >= $1)
     + (select coalesce(sum(cost_usd), 0)
          from ops.brief_costs
         where day >= ($1::timestamptz at time zone 'UTC')::date) as cost_usd;

-- name: chainCost :one
-- What the escalation chain of session $1 has cost so far.
select coalesce(sum(c.cost_usd), 0) as cost_usd
  from ops.sessions s
  join ops.sessions c on c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id)
 where s.id = $1;

-- name: saveLines :exec
-- Stores the JSON array $2 of lines of session $1, and tells whoever follows it.
with saved as (
  insert into ops.session_lines (session_id, seq, at, kind, text)
  select $1, line.seq, line.at, line.kind, line.text
    from jsonb_to_recordset($2::jsonb) as line(seq integer, at timestamptz, kind text, text text)
  on conflict (session_id, seq) do nothing
)
select pg_notify('ops_lines', $1::bigint::text);

-- name: listLines :many
-- The lines of session $1 after line $2.
select seq, at, kind, text
  from ops.session_lines
 where session_id = $1
   and seq > $2
 order by seq
 limit $3;

-- name: announceSessions :exec
-- Tells every instance, when the transaction commits, that a session began, ended or is asked to stop.
select pg_notify('ops_sessions', '');

-- name: claimSchedule :optional
-- The turn to start the scheduled session at $1, unless one was claimed since $2; then empty. One of the future is no
-- claim: a clock was set back.
update ops.settings
   set scheduled_at = $1
 where scheduled_at is null
    or scheduled_at < $2
    or scheduled_at > $1::timestamptz + interval '1 minute'
returning scheduled_at;

-- name: isScheduleClaimed :one
-- Whether the last turn that was claimed is the one of $1.
select scheduled_at is not distinct from $1::timestamptz as claimed
  from ops.settings;

-- name: findStatus :optional
-- Empty when there is no such session.
select status
  from ops.sessions
 where id = $1;

-- name: listLinesBefore :many
-- The lines of session $1 before line $2, the last one first.
select seq, at, kind, text
  from ops.session_lines
 where session_id = $1
   and seq < $2
 order by seq desc
 limit $3;

-- name: listChain :many
-- The escalation chain that session $1 is part of, from its first session on.
select c.id, c.tier, c.model, c.status, c.started_at, c.ended_at, c.exit_code, c.cost_usd, c.num_turns, c.trigger,
       c.prompt_text, c.parent_session_id, c.duration_ms
  from ops.sessions s
  join ops.sessions c on c.id = coalesce(s.chain_id, s.id) or c.chain_id = coalesce(s.chain_id, s.id)
 where s.id = $1
 order by c.id
 limit $2;
