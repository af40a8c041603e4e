-- Who changed what, for all services.

create schema audit;

-- A line is written in the transaction of its change. The length of texts is bounded where they are written.
create table audit.changes (
  id      bigint           generated always as identity primary key,
  at      timestamptz(3)   not null default now(),
  actor   text             not null, -- a user, "operator", "command", "token NAME", "session N"
  action  text             not null, -- such as "provider add"
  service text collate "C" not null check (service in ('hooks', 'links', 'ops')),
  subject text             not null -- what was changed; never a secret
);
create index changes_by_service on audit.changes (service, id desc);
