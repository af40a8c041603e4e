-- Hooks: providers, their events, and what is done with them.
--
-- Text that is part of an index is compared by its bytes (collate "C"). The order of a language depends
-- on a library of the host: after its upgrade an index may miss rows that it has.

create schema hooks;

-- The three built-in signed providers, and the generic ones that an operator created.
create table hooks.providers (
  name                   text collate "C" primary key,
  family                 text           not null check (family in ('webhook', 'queue')),
  trust_mode             text           not null check (trust_mode in ('signed', 'token', 'open', 'queue')),
  enabled                boolean        not null, -- without its secret a provider is off anyway
  token_hash             bytea          check (length(token_hash) = 32), -- SHA-256; the token is never stored
  retired_hash           bytea          check (length(retired_hash) = 32), -- SHA-256 of the previous token
  created_at             timestamptz    not null default now(),
  signing_secret         bytea,         -- encrypted with GATEHOUSE_SECRET_KEY and bound to this row's name
  retired_signing_secret bytea,         -- the previous signing secret, encrypted in the same way
  retired_until          timestamptz(3), -- the previous token or secret is accepted until then
  rotated_at             timestamptz(3),
  -- The secret of the newest verified delivery, and when that came (updated once a minute).
  last_secret            text           check (last_secret in ('current', 'previous')),
  last_secret_at         timestamptz(3),
  expected_interval_s    integer        check (expected_interval_s > 0), -- alarm "silent"
  rejection_burst        integer        check (rejection_burst > 0), -- alarm "burst", per 5 minutes
  watched_since          timestamptz(3) -- silence counts from here: last enabled, or interval last changed
);

insert into hooks.providers (name, family, trust_mode, enabled)
values ('code_host', 'webhook', 'signed', true),
       ('payments', 'webhook', 'signed', true),
       ('chat', 'webhook', 'signed', true);

-- Accepted deliveries, byte for byte. Ids become visible in ascending order: saveEvents holds a lock.
create table hooks.events (
  id            bigint           generated always as identity primary key,
  provider      text collate "C" not null,
  event_type    text collate "C",
  trust_mode    text             not null check (trust_mode in ('signed', 'token', 'open', 'queue')),
  verified      boolean          not null,
  verify_detail text,
  external_id   text collate "C", -- the provider's delivery id
  content_type  text,
  source_ip     text,
  headers       jsonb            not null,
  payload       bytea            not null,
  payload_size  integer          generated always as (length(payload)) stored,
  body_hash     bytea            not null, -- SHA-256: finds the same signed body under another delivery id
  attempts      integer          not null default 1, -- deliveries; a repeat only counts
  received_at   timestamptz(3)   not null,
  constraint events_delivery unique (provider, external_id)
)
-- A payload of common size stays in its row: a separate TOAST chunk costs an eighth of an insert.
with (toast_tuple_target = 8160);
alter table hooks.events alter column payload set storage external;

-- Ascending, although lists show the newest first. PostgreSQL appends to an ascending index without a search
-- and leaves full pages behind; in a descending one, new rows split pages. Reading backwards costs the same.
create index events_newest on hooks.events (received_at, id);
create index events_newest_of_provider on hooks.events (provider, received_at, id);
create index events_newest_of_type on hooks.events (event_type, received_at, id) where event_type is not null;
-- A btree, because bodies repeat: a hash index walks all events with the same body at every insert.
create index events_of_signed_body on hooks.events (body_hash, id) where trust_mode = 'signed';

-- The payload as JSON for search by a path; null if it is not JSON or too large.
-- Larger payloads would take gigabytes in the embedded engine. Deeply nested ones would crash it.
create function hooks.payload_json(payload bytea) returns jsonb
language plpgsql immutable strict
-- Parallel unsafe: the exception block is a subtransaction, which PostgreSQL refuses in parallel workers.
parallel unsafe
as $$
declare
  escaped text;
begin
  if octet_length(payload) > 1048576 then
    return null;
  end if;
  escaped := encode(payload, 'escape');
  if length(escaped) - length(translate(escaped, '[{', '')) > 100000 then
    return null;
  end if;
  return convert_from(payload, 'UTF8')::jsonb;
exception
  -- Not UTF-8, not JSON, or with a NUL, which jsonb can't hold: no path matches.
  when others then return null;
end
$$;

-- The event type of a provider's first signed event with this body; without one, the type that is given.
-- Volatile, so that it sees events that were committed while the caller waited for its lock.
create function hooks.first_event_type(provider_of text, hash_of bytea, given text) returns text
language plpgsql volatile
-- For a common body, the planner would walk the primary key with "=", and read all events for any other body.
-- Only events_of_signed_body gives this order without a sort.
set enable_sort = off
as $$
declare
  first record;
begin
  select e.event_type
    into first
    from hooks.events e
   where e.trust_mode = 'signed'
     and e.body_hash between hash_of and hash_of
     and e.provider = provider_of
   order by e.body_hash, e.id
   limit 1;
  return case when found then first.event_type else given end;
end
$$;

-- Events per provider and minute of the last two days, for the dashboard.
create table hooks.activity (
  provider text collate "C" not null,
  minute   timestamptz      not null,
  events   integer          not null,
  primary key (provider, minute)
) with (fillfactor = 50);

-- The newest rejected deliveries, without payload.
create table hooks.rejections (
  id       bigint           generated always as identity primary key,
  at       timestamptz(3)   not null,
  provider text collate "C" not null,
  status   smallint         not null check (status in (401, 403, 413)),
  source   text             not null, -- the network of the client, not its address
  reason   text             not null
);
create index rejections_by_provider on hooks.rejections (provider, id desc);

-- Counts of all rejected deliveries, also of those that hooks.rejections no longer has.
create table hooks.rejection_totals (
  provider text collate "C" not null,
  status   smallint         not null,
  total    bigint           not null,
  last_at  timestamptz(3)   not null,
  primary key (provider, status)
);

-- Deliveries with a wrong signature or token, for the alarm "burst": per provider and minute of the last
-- two days.
create table hooks.refusals (
  provider text collate "C" not null,
  minute   timestamptz      not null,
  refused  integer          not null,
  primary key (provider, minute)
) with (fillfactor = 50);

-- The last batch of rejections of each process. If an acknowledgement is lost, the batch is sent again
-- with the same number, and counts once.
create table hooks.rejection_writers (
  writer uuid           primary key,
  batch  bigint         not null,
  at     timestamptz(3) not null
);

-- Sends of an event to another server or to a forwarder; the newest 200 of each event are kept.
create table hooks.attempts (
  id       bigint         generated always as identity primary key,
  event_id bigint         not null references hooks.events on delete cascade,
  kind     text           not null check (kind in ('replay', 'forward')),
  target   text           not null, -- URL without tokens
  -- delivered: answered with 2xx. failed: answered otherwise or not at all. refused: no connection was made.
  outcome  text           not null check (outcome in ('delivered', 'failed', 'refused')),
  status   smallint,      -- null: no answer
  ms       integer        not null,
  detail   text,
  at       timestamptz(3) not null,
  check (outcome <> 'delivered' or status between 200 and 299)
);
create index attempts_by_event on hooks.attempts (event_id, id desc);

-- MCP endpoints, /mcp/{name}.
create table hooks.endpoints (
  name         text collate "C" primary key,
  token_hash   bytea            not null unique check (length(token_hash) = 32), -- SHA-256 of the token
  may_replay   boolean          not null,
  created_at   timestamptz(3)   not null default now(),
  last_used_at timestamptz(3)   -- updated at most once a minute
);

-- Where each named "gatehouse forward" resumes.
create table hooks.forwarders (
  name       text collate "C" primary key check (length(name) between 1 and 200),
  position   bigint           not null, -- the highest event that is delivered, skipped or filtered out
  connection bigint           not null default 1, -- number of the newest one, which alone moves the position
  updated_at timestamptz(3)   not null
);

create table hooks.settings (
  only_row               boolean primary key default true check (only_row),
  retention_max_age_days integer not null default 30 check (retention_max_age_days >= 0),
  retention_max_rows     integer not null default 50000 check (retention_max_rows >= 0),
  sse_retry_ms           integer not null default 3000 check (sse_retry_ms >= 250),
  replay_default_target  text,
  pruned_through         bigint  not null default 0 -- highest id removed: a stream from below has a gap
);
insert into hooks.settings default values;
