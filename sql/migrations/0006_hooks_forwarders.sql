create table hooks.forwarders (
  name       text           primary key check (length(name) between 1 and 200),
  position   bigint         not null,
  connection bigint         not null default 1,
  updated_at timestamptz(3) not null
);
comment on table hooks.forwarders is 'Where each "gatehouse forward" stands, by its name.';
comment on column hooks.forwarders.position is 'The highest event that it is done with: delivered, left out or not wanted.';
comment on column hooks.forwarders.connection is 'Number of its newest connection: only that one may move the position.';
