create table hooks.endpoints (
  name         text        primary key,
  token_hash   bytea       not null unique check (length(token_hash) = 32),
  may_replay   boolean     not null,
  created_at   timestamptz(3) not null default now(),
  last_used_at timestamptz(3)
);
comment on table hooks.endpoints is 'Where programs reach the tools: /mcp/{name}, each with a bearer token of its own.';
comment on column hooks.endpoints.token_hash is 'SHA-256 of the token; the token itself is shown once and never stored.';
comment on column hooks.endpoints.last_used_at is 'To the minute at best: a use is written down at most once a minute.';
