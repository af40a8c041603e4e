create schema hooks;

create table hooks.providers (
  name              text        primary key,
  family            text        not null check (family in ('webhook', 'queue')),
  trust_mode        text        not null check (trust_mode in ('signed', 'token', 'open', 'queue')),
  enabled           boolean     not null,
  token_hash        bytea       check (length(token_hash) = 32),
  retired_hash      bytea       check (length(retired_hash) = 32),
  created_at        timestamptz not null default now()
);
comment on table hooks.providers is 'Who may send: the three signed senders, and generic ones that an operator created.';
comment on column hooks.providers.enabled is 'What the operator wants; a sender without its secret stays disabled all the same.';
comment on column hooks.providers.token_hash is 'SHA-256 of the token of a generic sender; the token itself is shown once and never stored.';
comment on column hooks.providers.retired_hash is 'SHA-256 of the token before the last rotation: only to tell a sender that still uses it.';

insert into hooks.providers (name, family, trust_mode, enabled)
values ('code_host', 'webhook', 'signed', true),
       ('payments', 'webhook', 'signed', true),
       ('chat', 'webhook', 'signed', true);

create table hooks.events (
  id            bigint         generated always as identity primary key,
  provider      text           not null,
  event_type    text,
  trust_mode    text           not null check (trust_mode in ('signed', 'token', 'open', 'queue')),
  verified      boolean        not null,
  verify_detail text,
  external_id   text,
  content_type  text,
  source_ip     text,
  headers       jsonb          not null,
  payload       bytea          not null,
  payload_size  integer        generated always as (length(payload)) stored,
  body_hash     bytea          not null,
  attempts      integer        not null default 1,
  received_at   timestamptz(3) not null,
  constraint events_delivery unique (provider, external_id)
);
comment on table hooks.events is 'Accepted deliveries, byte for byte. Ids become visible in order: writers take turns (see saveEvents).';
comment on column hooks.events.external_id is 'The delivery id of the sender, unique per provider: a repeat raises attempts and stores nothing.';
comment on column hooks.events.body_hash is 'SHA-256 of the body: the same signed body under a fresh delivery id may be a replay.';

alter table hooks.events alter column payload set storage external;

create index events_by_time on hooks.events (received_at desc, id desc);
create index events_by_provider on hooks.events (provider, received_at desc, id desc);
create index events_by_type on hooks.events (event_type, received_at desc, id desc);
create index events_by_body on hooks.events using hash (body_hash);

create table hooks.activity (
  provider text        not null,
  minute   timestamptz not null,
  events   integer     not null,
  primary key (provider, minute)
) with (fillfactor = 50);
comment on table hooks.activity is 'Events per provider and minute of the last two days: what the dashboard counts instead of events.';

create table hooks.rejections (
  id       bigint         generated always as identity primary key,
  at       timestamptz(3) not null,
  provider text           not null,
  status   smallint       not null check (status in (401, 403, 413)),
  source   text           not null,
  reason   text           not null
);
comment on table hooks.rejections is 'The newest refused deliveries, without payload; source is the sender''s network only.';
create index rejections_by_provider on hooks.rejections (provider, id desc);

create table hooks.rejection_totals (
  provider text   not null,
  status   smallint not null,
  total    bigint not null,
  last_at  timestamptz(3) not null,
  primary key (provider, status)
);
comment on table hooks.rejection_totals is 'Every refused delivery counted, also those that hooks.rejections no longer holds.';

create table hooks.settings (
  only_row               boolean primary key default true check (only_row),
  retention_max_age_days integer not null default 30 check (retention_max_age_days >= 0),
  retention_max_rows     integer not null default 50000 check (retention_max_rows >= 0),
  sse_retry_ms           integer not null default 3000 check (sse_retry_ms >= 250),
  replay_default_target  text,
  pruned_through         bigint  not null default 0
);
comment on column hooks.settings.pruned_through is 'Highest event id that retention removed: a stream that resumes below it has a gap.';
insert into hooks.settings default values;
