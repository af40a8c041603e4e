-- name: listEndpoints
-- All endpoints of the tool protocol, by name.
select name, may_replay, created_at, last_used_at
  from hooks.endpoints
 order by name;

-- name: listEndpointKeys
-- What the tokens of requests are compared with.
select name, token_hash, may_replay
  from hooks.endpoints
 order by name;

-- name: addEndpoint
-- Adds an endpoint. Empty when the name is taken.
with added as (
  insert into hooks.endpoints (name, token_hash, may_replay)
  values (:name, :token_hash, :may_replay)
  on conflict (name) do nothing
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from added
)
select added.name from added left join notified on true;

-- name: removeEndpoint
-- Removes an endpoint and so revokes its token, whose hash it gives. Empty when there is none of this name.
with removed as (
  delete from hooks.endpoints where name = :name returning token_hash
), notified as (
  select pg_notify('hooks_config', '') as sent from removed
)
select removed.token_hash from removed left join notified on true;

-- name: touchEndpoint
-- Records a use, unless another instance recorded one less than a minute ago.
update hooks.endpoints
   set last_used_at = :now
 where name = :name
   and (last_used_at is null or last_used_at < :now::timestamptz - interval '1 minute');
