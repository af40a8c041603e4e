create schema ops;

create table ops.sessions (
  id                bigint         generated always as identity primary key,
  tier              smallint       not null check (tier between 1 and 3),
  model             text           not null,
  status            text           not null
                    check (status in ('running', 'completed', 'failed', 'timed_out', 'escalated', 'stopped')),
  trigger           text           not null check (trigger in ('scheduled', 'manual', 'api', 'escalation', 'alert')),
  started_at        timestamptz(3) not null,
  ended_at          timestamptz(3),
  exit_code         integer,
  cost_usd          double precision,
  num_turns         integer,
  duration_ms       bigint,
  prompt_text       text,
  summary           text,
  parent_session_id bigint         references ops.sessions (id),
  chain_id          bigint         references ops.sessions (id),
  marker            uuid           not null default gen_random_uuid(),
  holder            text           not null,
  machine           text           not null,
  heartbeat_at      timestamptz(3) not null,
  stop_asked        boolean        not null default false,
  check ((status = 'running') = (ended_at is null))
);
comment on table ops.sessions is 'Investigation sessions. The index sessions_one_running is what lets only one run, whoever starts it.';
comment on column ops.sessions.chain_id is 'The first session of the escalation chain; null for the first itself.';
comment on column ops.sessions.marker is 'Stands in the environment of every process that the session starts: by it they are found.';
comment on column ops.sessions.holder is 'The process of Gatehouse that runs it: its id and start time on its machine.';
comment on column ops.sessions.machine is 'Boot and process namespace of the holder: there alone its process id means something.';
comment on column ops.sessions.heartbeat_at is 'A lease that is not renewed has lapsed.';
create unique index sessions_one_running on ops.sessions ((true)) where status = 'running';
create index sessions_by_start on ops.sessions (started_at desc, id desc);
create index sessions_by_chain on ops.sessions (chain_id, id);
create index sessions_by_parent on ops.sessions (parent_session_id);

create table ops.session_lines (
  session_id bigint         not null references ops.sessions (id) on delete cascade,
  seq        integer        not null,
  at         timestamptz(3) not null,
  kind       text           not null,
  text       text           not null,
  primary key (session_id, seq)
);
comment on table ops.session_lines is 'What a session put out, line by line, without secrets.';

create table ops.events (
  id         bigint         generated always as identity primary key,
  session_id bigint         references ops.sessions (id) on delete set null,
  level      text           not null check (level in ('info', 'warning', 'critical')),
  service    text,
  message    text           not null,
  created_at timestamptz(3) not null
);
create index events_by_time on ops.events (created_at desc, id desc);
create index events_by_level on ops.events (level, created_at desc, id desc);
create index events_by_service on ops.events (service, created_at desc, id desc);
create index events_by_session on ops.events (session_id);

create table ops.memories (
  id          bigint           generated always as identity primary key,
  service     text,
  category    text             not null,
  observation text             not null,
  confidence  double precision not null check (confidence between 0 and 1),
  active      boolean          not null,
  created_at  timestamptz(3)   not null,
  updated_at  timestamptz(3)   not null,
  fades_at    timestamptz(3)   not null,
  session_id  bigint           references ops.sessions (id) on delete set null,
  tier        smallint         not null
);
comment on table ops.memories is 'What was learned; tier 0 and no session for what an operator wrote.';
comment on column ops.memories.fades_at is 'When it next loses confidence, unless it is renewed before.';
create index memories_by_confidence on ops.memories (confidence desc, id);
create index memories_by_service on ops.memories (service, category);

create table ops.actions (
  id          bigint         generated always as identity primary key,
  session_id  bigint         references ops.sessions (id) on delete set null,
  service     text           not null,
  action_type text           not null,
  operation   text           not null,
  at          timestamptz(3) not null,
  outcome     text
);
comment on table ops.actions is 'Operations that were run: what cooldowns count. A dry run is none.';
comment on column ops.actions.outcome is 'What came of it, in one line; null while it runs.';
create index actions_by_service on ops.actions (service, action_type, at desc);
create index actions_by_time on ops.actions (at desc);

create table ops.alerts (
  id           bigint         generated always as identity primary key,
  fingerprint  text           not null,
  source       text,
  title        text           not null,
  payload      text           not null,
  count        integer        not null default 1,
  first_seen   timestamptz(3) not null,
  last_seen    timestamptz(3) not null,
  outcome      text           not null check (outcome in ('received', 'acknowledged', 'failed', 'triggered')),
  problem      text,
  session_id   bigint         references ops.sessions (id) on delete set null,
  constraint alerts_fingerprint unique (fingerprint)
);
comment on table ops.alerts is 'Deliveries to the alert webhook, grouped by fingerprint; each is kept, whatever came of it.';
comment on column ops.alerts.outcome is 'What came of the newest delivery; failed: there is no brief of it, and problem says why.';
comment on column ops.alerts.session_id is 'The newest session that it started.';
comment on column ops.alerts.payload is 'The newest delivery, without the key that authorised it.';
create index alerts_by_time on ops.alerts (last_seen desc, id desc);

create table ops.settings (
  only_row     boolean primary key default true check (only_row),
  interval     integer check (interval > 0),
  tier1_model  text,
  tier2_model  text,
  tier3_model  text,
  dry_run      boolean,
  scheduled_at timestamptz(3)
);
comment on table ops.settings is 'What PUT config saved: null leaves it to flag, environment or default.';
comment on column ops.settings.scheduled_at is 'When the newest scheduled session was claimed, by whichever instance.';
insert into ops.settings (only_row) values (true);

create table ops.notices (
  id         bigint         generated always as identity primary key,
  event_id   bigint         unique references ops.events (id) on delete cascade,
  session_id bigint         unique references ops.sessions (id) on delete cascade,
  created_at timestamptz(3) not null,
  attempts   integer        not null default 0,
  next_at    timestamptz(3) not null,
  sent_at    timestamptz(3),
  check ((event_id is null) <> (session_id is null))
);
comment on table ops.notices is 'Who is to be told of what, once each: of a critical event or a failed session.';
create index notices_due on ops.notices (next_at) where sent_at is null;

create table ops.check_states (
  service text           not null,
  name    text           not null,
  ok      boolean        not null,
  since   timestamptz(3) not null,
  primary key (service, name)
);
comment on table ops.check_states is 'How each check of the inventory went last, and since when it goes so.';
