-- Ops: sessions that investigate services, what they found, and the alerts that start them.

create schema ops;

create table ops.sessions (
  id                bigint         generated always as identity primary key,
  tier              smallint       not null check (tier between 1 and 3),
  model             text           not null,
  status            text collate "C" not null
                    check (status in ('running', 'completed', 'failed', 'timed_out', 'escalated', 'stopped')),
  trigger           text collate "C" not null
                    check (trigger in ('scheduled', 'manual', 'api', 'escalation', 'alert')),
  started_at        timestamptz(3) not null,
  ended_at          timestamptz(3),
  exit_code         integer,
  cost_usd          double precision, -- while it runs: so far
  num_turns         integer,
  tool_calls        integer, -- null where they are not counted
  duration_ms       bigint,
  prompt_text       text,
  summary           text,
  parent_session_id bigint         references ops.sessions (id),
  chain_id          bigint         references ops.sessions (id), -- first of the escalation; null in that one
  alert_id          bigint,        -- the alert that its chain looks into, which retention may remove before it
  marker            uuid           not null default gen_random_uuid(), -- in its processes' environment
  holder            text           not null, -- the process that runs it: id and start time on its machine
  machine           text           not null, -- boot and pid namespace, in which the process id is valid
  heartbeat_at      timestamptz(3) not null, -- the database's clock; not renewed: any instance fails the session
  stop_asked        boolean        not null default false,
  check ((status = 'running') = (ended_at is null))
);
-- At most one session runs at a time, over all instances.
create unique index sessions_one_running on ops.sessions ((true)) where status = 'running';
create index sessions_by_start on ops.sessions (started_at desc, id desc);
create index sessions_by_status on ops.sessions (status, started_at desc, id desc);
create index sessions_by_trigger on ops.sessions (trigger, started_at desc, id desc);
create index sessions_by_status_and_trigger on ops.sessions (status, trigger, started_at desc, id desc);
create index sessions_by_chain on ops.sessions (chain_id, id);
create index sessions_by_parent on ops.sessions (parent_session_id);
create index sessions_by_alert on ops.sessions (alert_id, id);
-- Those that may wait for a person.
create index sessions_waiting on ops.sessions (ended_at desc, id desc)
  where status in ('failed', 'timed_out', 'escalated');

-- Sessions by the day (UTC) on which they began, for charts: counted when they begin, their cost when they end, and kept when
-- they are removed.
create table ops.session_counts (
  day      date             primary key,
  sessions integer          not null,
  cost_usd double precision not null
);

-- Output of a session, line by line, without secrets.
create table ops.session_lines (
  session_id bigint         not null references ops.sessions (id) on delete cascade,
  seq        integer        not null,
  at         timestamptz(3) not null,
  kind       text           not null,
  text       text           not null,
  call       integer, -- number of the tool call within the session that the line is of; null for other lines
  primary key (session_id, seq)
);
-- A session's page shows the first lines of each call, and all that is no call.
create index session_lines_by_call on ops.session_lines (session_id, call, seq);

create table ops.events (
  id         bigint           generated always as identity primary key,
  session_id bigint           references ops.sessions (id) on delete set null,
  level      text collate "C" not null check (level in ('info', 'warning', 'critical')),
  service    text collate "C",
  message    text             not null,
  created_at timestamptz(3)   not null,
  -- Whether it waits for a person. What a check found does not: its state says whether it lasts.
  waits      boolean          not null default false
);
create index events_by_time on ops.events (created_at desc, id desc);
create index events_by_level on ops.events (level, created_at desc, id desc);
create index events_by_service on ops.events (service, created_at desc, id desc);
create index events_by_level_and_service on ops.events (level, service, created_at desc, id desc);
-- Each table with a session_id has such an index: without it, removing a session reads the whole table.
create index events_by_session on ops.events (session_id);
create index events_waiting on ops.events (created_at desc, id desc) where waits;

-- Events by day (UTC), for charts: counted when they are added, and kept when they are removed.
create table ops.event_counts (
  day    date    primary key,
  events integer not null
);

-- What sessions learned, and what operators wrote (tier 0, no session).
create table ops.memories (
  id          bigint           generated always as identity primary key,
  service     text collate "C",
  category    text collate "C" not null,
  observation text             not null,
  confidence  double precision not null check (confidence between 0 and 1),
  active      boolean          not null,
  created_at  timestamptz(3)   not null,
  updated_at  timestamptz(3)   not null,
  fades_at    timestamptz(3)   not null, -- when it next loses confidence, unless it is renewed
  session_id  bigint           references ops.sessions (id) on delete set null,
  tier        smallint         not null,
  faded       boolean          not null default false, -- inactive only until it is seen again
  check_name  text collate "C", -- the check whose usual time it states, if any
  seen_by     bigint,            -- the session that noted it last, which may be gone
  confirmed_by text              -- the person who said that it is true
);
create index memories_by_confidence on ops.memories (confidence desc, id);
create index memories_by_service on ops.memories (service, category);
create index memories_by_session on ops.memories (session_id);
create unique index memories_by_check on ops.memories (service, check_name);

-- Operations that were run, for cooldowns. Dry runs are not stored.
create table ops.actions (
  id          bigint           generated always as identity primary key,
  session_id  bigint           references ops.sessions (id) on delete set null,
  service     text collate "C" not null,
  action_type text collate "C" not null,
  operation   text             not null,
  at          timestamptz(3)   not null,
  outcome     text             -- one line; null while it runs
);
create index actions_by_service on ops.actions (service, action_type, at desc);
create index actions_by_time on ops.actions (at desc);
create index actions_by_session on ops.actions (session_id);

-- Operations that a person must approve: a session asks, a person decides, and an instance runs it, once.
create table ops.approvals (
  id           bigint         generated always as identity primary key,
  session_id   bigint         references ops.sessions (id) on delete set null, -- that asks for it
  service      text collate "C" not null,
  operation    text collate "C" not null,
  argv         jsonb          not null, -- what is approved, without secrets
  reason       text           not null, -- of the session
  status       text collate "C" not null default 'pending'
               check (status in ('pending',
                                 'approved',    -- an instance is about to run it
                                 'rejected', 'expired',
                                 'running', 'done', 'failed',
                                 'refused',     -- not run: it was not allowed any more
                                 'interrupted')), -- its process has ended, or was stopped
  -- By the database's clock.
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3) not null,
  decided_at   timestamptz(3),
  decided_by   text,          -- the actor
  outcome      text,          -- one line; null before its end
  action_id    bigint         references ops.actions (id) on delete set null, -- once it runs
  marker       uuid           not null default gen_random_uuid(), -- in the environment of its processes
  -- The process that runs it, as in ops.sessions.
  holder       text,
  machine      text,
  heartbeat_at timestamptz(3),
  check ((decided_at is null) = (decided_by is null)),
  check (status <> 'running' or holder is not null)
);
-- The same call again joins the one that is open.
create unique index approvals_open on ops.approvals (service, operation)
  where status in ('pending', 'approved', 'running');
create index approvals_by_session on ops.approvals (session_id);
create index approvals_by_action on ops.approvals (action_id);
create index approvals_by_time on ops.approvals (created_at desc, id desc);

-- Deliveries to the alert webhook, grouped by fingerprint. Every delivery is kept, whatever its outcome. The sessions that look
-- into an alert name it.
create table ops.alerts (
  id            bigint           generated always as identity primary key,
  fingerprint   text collate "C" not null,
  source        text,
  service       text collate "C",
  labels        jsonb            not null default '{}',
  count         integer          not null default 1,
  first_seen    timestamptz(3)   not null,
  last_seen     timestamptz(3)   not null,
  state         text collate "C" not null default 'firing' check (state in ('firing', 'resolved')),
  firing_since  timestamptz(3)   not null default now(), -- when the newest firing began
  resolved_at   timestamptz(3),  -- when that ended; null while it fires
  firings       integer          not null default 1,
  -- The columns from here on are about the newest delivery that did not join an earlier one.
  outcome       text collate "C" not null
                check (outcome in ('received', 'acknowledged', 'failed', 'triggered', 'waiting', 'resolved', 'silenced')),
  problem       text,            -- why it has no brief, or that its client disconnected
  content       text             not null, -- the newest text in ops.alert_texts
  tier          smallint         not null default 1, -- the tier that it asks for
  reading       integer          not null default 1, -- the number of that delivery
  waiting_since timestamptz(3),  -- it waits for a session, or one of those that wait is read
  due_at        timestamptz(3),  -- of one that waits: no session starts before
  silence_id    bigint,          -- the silence that holds it back
  holder        text             not null default '', -- the process that reads it, as in ops.sessions; '' for none
  machine       text             not null default '',
  reading_since timestamptz(3)   not null default now(), -- the database's clock
  told_at       timestamptz(3),  -- when operators were last notified that it has no brief
  constraint alerts_fingerprint unique (fingerprint)
);
create index alerts_by_time on ops.alerts (last_seen desc, id desc);
create index alerts_by_service on ops.alerts (service, last_seen desc, id desc);
create index alerts_by_state on ops.alerts (state, last_seen desc, id desc);
create index alerts_by_state_and_service on ops.alerts (state, service, last_seen desc, id desc);
create index alerts_in_progress on ops.alerts (outcome, id) where outcome in ('received', 'waiting');
create index alerts_silenced on ops.alerts (id) where outcome = 'silenced' and state = 'firing';
-- Of failing checks.
create index alerts_of_checks on ops.alerts (id) where source = 'gatehouse' and state = 'firing';
-- Those that may wait for a person.
create index alerts_waiting on ops.alerts (last_seen desc, id desc) where outcome in ('acknowledged', 'failed');

-- Times in which alerts that match start no session.
create table ops.silences (
  id        bigint         generated always as identity primary key,
  match     jsonb          not null, -- by label: its value, in which * stands for anything
  starts_at timestamptz(3) not null,
  ends_at   timestamptz(3) not null check (ends_at > starts_at),
  reason    text           not null,
  author    text           not null
);
create index silences_by_end on ops.silences (ends_at);

-- The texts of an alert's deliveries, so that no delivery overwrites another one.
create table ops.alert_texts (
  alert_id   bigint           not null references ops.alerts (id) on delete cascade,
  -- Hash of the text without its times. Of texts that differ only in their times, the newest is kept.
  content    text collate "C" not null,
  title      text             not null,
  payload    text             not null, -- without the key that authorised it
  count      integer          not null default 1,
  first_seen timestamptz(3)   not null,
  last_seen  timestamptz(3)   not null,
  number     bigint           not null generated always as identity, -- tells those of one moment apart
  primary key (alert_id, content)
);
create index alert_texts_by_time on ops.alert_texts (alert_id, last_seen desc, number desc);

-- What people noted of an alert.
create table ops.alert_notes (
  id       bigint         generated always as identity primary key,
  alert_id bigint         not null references ops.alerts (id) on delete cascade,
  at       timestamptz(3) not null,
  author   text           not null, -- the actor
  text     text           not null
);
create index alert_notes_by_alert on ops.alert_notes (alert_id, id);

-- Cost of the models that wrote briefs of alerts, per day (UTC). It counts against the day's budget.
create table ops.brief_costs (
  day      date             primary key,
  cost_usd double precision not null
);

-- Who may call /mcp/ops: people's own assistants, each with a token.
create table ops.assistants (
  name         text collate "C" primary key,
  token_hash   bytea            not null unique check (length(token_hash) = 32), -- SHA-256; the token is never stored
  may_start    boolean          not null, -- to start sessions
  created_at   timestamptz(3)   not null,
  last_used_at timestamptz(3)   -- updated at most once a minute
);

-- Values that PUT config saved; null leaves one to its flag, variable or default.
create table ops.settings (
  only_row      boolean        primary key default true check (only_row),
  interval      integer        check (interval > 0), -- seconds from one scheduled session to the next
  tier1_model   text,
  tier2_model   text,
  tier3_model   text,
  dry_run       boolean,
  status_services jsonb,        -- array of the services that /status shows, as a page chose them; null: the variable decides
  scheduled_at  timestamptz(3), -- when an instance last claimed a scheduled session, by the database's clock
  seen_until    timestamptz(3), -- what happened before waits for nobody: a person has seen it
  -- Since when no session starts by itself and no operation runs, and who has paused them; null: they go on.
  investigations_paused_at timestamptz(3),
  investigations_paused_by text,
  repairs_paused_at        timestamptz(3),
  repairs_paused_by        text,
  -- The process in which a model writes a brief: one at a time, over all instances.
  brief_holder  text,
  brief_machine text,
  brief_until   timestamptz(3), -- when it gives up, by the database's clock; from then on another one may begin
  queue_full_since timestamptz(3), -- since then alerts are not queued, because too many wait
  check ((investigations_paused_at is null) = (investigations_paused_by is null)),
  check ((repairs_paused_at is null) = (repairs_paused_by is null))
);
insert into ops.settings (only_row) values (true);

-- The checks that run by themselves, each with its state.
create table ops.checks (
  id            bigint         generated always as identity primary key,
  service       text collate "C" not null,
  name          text collate "C" not null,
  type          text collate "C" not null,
  every_s       integer        not null check (every_s >= 10),
  version       text           not null, -- hash of its definition
  source        text collate "C" not null default 'file' check (source in ('file', 'hand')), -- which definition counts
  definition    jsonb,          -- made by hand: as the inventory file would have it, without headers; null: none
  headers       jsonb          not null default '{}', -- those of the definition, encrypted, in base64
  removed_at    timestamptz(3), -- since when the inventory lacks it; null: it has it
  asked_at      timestamptz(3), -- somebody has asked for a look, whose result counts at once
  next_at       timestamptz(3) not null, -- when it is due
  claimed_until timestamptz(3), -- until then one instance runs it
  -- `unknown`: it had no means to look, or has not looked yet.
  state         text collate "C" not null default 'unknown' check (state in ('ok', 'warn', 'fail', 'unknown')),
  since         timestamptz(3) not null,
  message       text           not null default '',
  ms            integer        not null default 0, -- how long the last look took
  checked_at    timestamptz(3), -- the last look; null: none yet
  opposing      smallint       not null default 0, -- results in a row that contradict the state
  -- The tier of the session that its failure starts; null: none.
  investigate   smallint       check (investigate between 1 and 3),
  told_event    bigint,        -- event of the sent notice that the check fails; null once its end was sent
  told_at       timestamptz(3), -- when that was
  session_id    bigint         references ops.sessions (id) on delete set null, -- the one that looked last
  -- Of a heartbeat: when its job last said that it ended, and how long it took; when it last began, and when it first
  -- called. beat_failed: it has said that it failed, or a run did not end in time; until it succeeds.
  beat_at       timestamptz(3),
  beat_failed   boolean        not null default false,
  beat_ms       integer,
  beat_text     text           not null default '', -- the last lines that it sent along, up to 10 KiB
  begun_at      timestamptz(3),
  first_beat_at timestamptz(3),
  constraint checks_name unique (service, name)
);
create index checks_due on ops.checks (next_at) where removed_at is null;
create index checks_by_hand on ops.checks (id) where definition is not null;
create index checks_by_session on ops.checks (session_id);

-- The last session that was started for each check that failed.
create table ops.investigations (
  check_id   bigint         primary key references ops.checks on delete cascade,
  event_id   bigint         not null, -- that told the failure, as ops.checks.told_event
  at         timestamptz(3) not null,
  session_id bigint         references ops.sessions (id) on delete set null
);
create index investigations_by_session on ops.investigations (session_id);

-- The last 500 results of each check and some more, of two days at most.
create table ops.check_results (
  check_id bigint         not null references ops.checks on delete cascade,
  at       timestamptz(3) not null,
  state    text collate "C" not null,
  ms       integer        not null,
  message  text           not null,
  primary key (check_id, at)
);

-- Results by hour and by day (UTC).
create table ops.check_counts (
  check_id bigint         not null references ops.checks on delete cascade,
  span     text collate "C" not null check (span in ('hour', 'day')),
  start    timestamptz(3) not null,
  runs     integer        not null,
  failures integer        not null,
  warnings integer        not null,
  unknown  integer        not null,
  -- Of the looks that found something: unknown ones say nothing about the time.
  ms_min   integer,
  ms_sum   bigint         not null,
  ms_max   integer,
  primary key (check_id, span, start)
);
create index check_counts_by_start on ops.check_counts (span, start);

-- What the state of a check was, from when to when.
create table ops.check_periods (
  id           bigint         generated always as identity primary key,
  check_id     bigint         not null references ops.checks on delete cascade,
  state        text collate "C" not null,
  began_at     timestamptz(3) not null,
  ended_at     timestamptz(3), -- null: it lasts
  -- The message at its beginning, and the one at its end.
  message      text           not null,
  last_message text
);
create index check_periods_by_check on ops.check_periods (check_id, id desc);
create index check_periods_by_check_and_start on ops.check_periods (check_id, began_at desc);
create index check_periods_by_start on ops.check_periods (began_at desc, id desc);
-- At most one lasts.
create unique index check_periods_lasting on ops.check_periods (check_id) where ended_at is null;

-- Times in which failures are not told: of a check, of a service, or of all.
create table ops.mutes (
  id         bigint         generated always as identity primary key,
  service    text collate "C", -- null: of all services
  check_name text collate "C" check (check_name is null or service is not null), -- null: of all checks of the service
  starts_at  timestamptz(3) not null,
  ends_at    timestamptz(3) not null check (ends_at > starts_at),
  reason     text           not null,
  author     text           not null,
  every      text, -- of one that comes back: days and hours; starts_at and ends_at are the present or the next time
  tz         text, -- whose clock has these hours
  check ((every is null) = (tz is null))
);
create index mutes_by_end on ops.mutes (ends_at);

-- When a check is due next, after a moment: at its own second within its interval, so that checks are spread.
create function ops.next_run(check_id bigint, every_s integer, after timestamptz) returns timestamptz
language sql immutable
return to_timestamp((floor((extract(epoch from after) - check_id * 7919 % every_s) / every_s) + 1) * every_s
                    + check_id * 7919 % every_s);
