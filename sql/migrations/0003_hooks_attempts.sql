create table hooks.attempts (
  id       bigint         generated always as identity primary key,
  event_id bigint         not null references hooks.events on delete cascade,
  kind     text           not null check (kind in ('replay', 'forward')),
  target   text           not null,
  outcome  text           not null check (outcome in ('delivered', 'failed', 'refused')),
  status   smallint,
  ms       integer        not null,
  detail   text,
  at       timestamptz(3) not null,
  check (outcome <> 'delivered' or status between 200 and 299)
);
comment on table hooks.attempts is 'Every time that an event was sent on; the newest 200 of each event are kept.';
comment on column hooks.attempts.target is 'The URL it was sent to, without tokens.';
comment on column hooks.attempts.outcome is 'delivered: answered with 2xx; failed: another answer or none; refused: nothing was connected to.';
comment on column hooks.attempts.status is 'Status of the answer; null when there was none.';
create index attempts_by_event on hooks.attempts (event_id, id desc);
