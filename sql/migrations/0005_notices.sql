-- What people are told, for all services, and where it goes.

create schema notices;

create table notices.notices (
  id           bigint         generated always as identity primary key,
  kind         text collate "C" not null default 'event' check (kind in ('event', 'session')), -- 'session': one that failed
  service      text collate "C" not null, -- what it is about: a service that is checked, 'hooks', 'gatehouse'
  level        text collate "C" not null check (level in ('info', 'warning', 'critical')),
  message      text           not null,
  site         text collate "C" not null check (site in ('hooks', 'links', 'ops')), -- whose page it is about
  path         text           not null, -- of that page
  session_id   bigint         references ops.sessions (id) on delete set null,
  created_at   timestamptz(3) not null,
  key          text collate "C", -- of the beginning of what lasts: what it is, such as 'check 7'
  ended_at     timestamptz(3), -- when that was over
  begin_id     bigint         references notices.notices (id) on delete set null, -- of an end: its beginning
  about_target text collate "C", -- the target that it reports; the other ones get it
  acknowledged_at timestamptz(3),
  acknowledged_by text,          -- who
  check (ended_at is null or key is not null)
);
create index notices_by_time on notices.notices (created_at, id);
create index notices_by_begin on notices.notices (begin_id);
create index notices_by_session on notices.notices (session_id);
-- Of several instances that find the same, one adds its notice.
create unique index notices_lasting on notices.notices (key) where ended_at is null;
create index notices_of_lasting on notices.notices (created_at desc, id desc) where key is not null and ended_at is null;

-- What is sent to each target, once each.
create table notices.sends (
  notice_id bigint         not null references notices.notices (id) on delete cascade,
  target    text collate "C" not null,
  number    integer        not null default 0, -- above 0: a reminder; -1: that somebody has acknowledged it
  attempts  integer        not null default 0,
  next_at   timestamptz(3) not null,
  sent_at   timestamptz(3),
  problem   text,           -- why the last attempt failed
  incident  bigint,         -- of a beginning, at PagerDuty: the notice whose key it was sent with
  primary key (notice_id, target, number)
);
create index sends_due on notices.sends (target, next_at) where sent_at is null;
create index sends_by_target on notices.sends (target, sent_at);
create index sends_by_incident on notices.sends (target, incident) where incident is not null;

-- How fast a target gets beginnings, ends and reminders: after those that are sent alone, several are one message.
create table notices.paces (
  target   text collate "C" not null,
  stage    text collate "C" not null check (stage in ('beginning', 'end', 'reminder', 'acknowledgement')),
  next_at  timestamptz(3) not null, -- the next message of several is sent then
  alone    integer        not null, -- notices that were sent alone since the storm began
  incident bigint,                  -- PagerDuty: the notice whose key the other ones have
  primary key (target, stage)
);

-- What a send is, for the pace of its target: `number` is its own, `begin_id` that of its notice.
create function notices.stage_of(number integer, begin_id bigint) returns text
language sql immutable
return case when number < 0 then 'acknowledgement'
            when number > 0 then 'reminder'
            when begin_id is null then 'beginning'
            else 'end' end;

-- Where notices go, beside the addresses of the configuration.
create table notices.targets (
  name       text collate "C" primary key,
  kind       text           not null,
  host       text           not null, -- of the address, to be shown
  address    bytea          not null, -- encrypted
  token      bytea,                   -- encrypted
  services   jsonb,                   -- the names of the services of its notices; null: all
  levels     jsonb,                   -- their levels; null: all
  quiet      text,                    -- hours in which only critical ones go out, such as '22:00-07:00'
  after_s    integer        not null default 0, -- what lasts shorter is not told
  remind_s   integer,                 -- until it is acknowledged what lasts is told again this often
  created_at timestamptz(3) not null
);

-- The targets whose last attempt failed, since when.
create table notices.failing_targets (
  target text collate "C" primary key,
  since  timestamptz(3) not null
);
