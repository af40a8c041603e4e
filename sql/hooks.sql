-- name: findEvent :optional
-- Empty when no such event is stored, or retention removed it.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, payload, payload_size, attempts, received_at
  from hooks.events
 where id = $1;

-- name: findEventStart :optional
-- As findEvent, with the first $2 bytes of the payload: no more of a large one is read. Empty as there.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, substring(payload from 1 for $2) as payload, payload_size, attempts, received_at
  from hooks.events
 where id = $1;

-- name: findSameBody :optional
-- The first signed event with the same body under another delivery id; empty for a body seen once.
select id
  from hooks.events
 where trust_mode = 'signed'
   and body_hash = (select body_hash from hooks.events where id = $1)
   and provider = (select provider from hooks.events where id = $1)
   and id < $1
 order by id
 limit 1;

-- name: listEvents :many
-- Newest first, below the keyset position ($1, $2); $3 and $4 are lower bounds by time and by id.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where (received_at, id) < ($1, $2)
   and ($3::timestamptz is null or received_at >= $3)
   and ($4::bigint is null or id >= $4)
 order by received_at desc, id desc
 limit $5;

-- name: listEventsOfProvider :many
-- As listEvents, of one provider ($6): a query of its own, so that the plan always uses its index.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where provider = $6
   and (received_at, id) < ($1, $2)
   and ($3::timestamptz is null or received_at >= $3)
   and ($4::bigint is null or id >= $4)
 order by received_at desc, id desc
 limit $5;

-- name: listEventsOfType :many
-- As listEvents, of one event type ($6), from one provider ($7) or from all when that is null.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where event_type = $6
   and (received_at, id) < ($1, $2)
   and ($3::timestamptz is null or received_at >= $3)
   and ($4::bigint is null or id >= $4)
   and ($7::text is null or provider = $7)
 order by received_at desc, id desc
 limit $5;

-- name: searchWindowEnd :optional
-- How far one step of a search looks: the event $3 places below the position, or the first one with which there are
-- more than $4 bytes of payloads; empty when less is left.
select received_at, id
  from (select received_at, id,
               row_number() over position as place,
               sum(payload_size) over position as bytes
          from (select received_at, id, payload_size
                  from hooks.events
                 where (received_at, id) < ($1, $2)
                 order by received_at desc, id desc
                 limit $3) nearest
        window position as (order by received_at desc, id desc)) step
 where place = $3
    or bytes > $4
 order by received_at desc, id desc
 limit 1;

-- name: searchWindowThrough :optional
-- The same upwards: the first event above id $1 and up to $2 with which there are more than $3 bytes of payloads;
-- empty when there are not so many.
select id
  from (select id, sum(payload_size) over (order by id) as bytes
          from hooks.events
         where id > $1
           and id <= $2) step
 where bytes > $3
 order by id
 limit 1;

-- name: findIdBelow :optional
-- The lowest id from $1 on whose event is below a position ($2, $3): with it a search by id goes on. Empty when all of
-- them are above, which is seen by looking at each: at $4 of them at most, then it is the last one looked at. Who asks
-- again starts from the id found.
select id
  from (select id, received_at, row_number() over (order by id) as place
          from hooks.events
         where id >= $1
         order by id
         limit $4) looked
 where (received_at, id) < ($2, $3)
    or place = $4
 order by id
 limit 1;

-- name: searchEvents :many
-- Of the events between two positions those whose payload holds the bytes $9 in its first MiB, or at the JSON path
-- $11 the value $12; $10, the member's name, rules most payloads out before they are read as JSON. The comparison takes
-- up to the length of the one times that of the other: a MiB bounds it.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where (received_at, id) < ($1, $2)
   and (received_at, id) >= ($3, $4)
   and ($5::text is null or provider = $5)
   and ($6::text is null or event_type = $6)
   and ($7::timestamptz is null or received_at >= $7)
   and ($8::bigint is null or id >= $8)
   and ($9::bytea is null or position($9::bytea in substring(payload from 1 for 1048576)) > 0)
   and ($10::bytea is null
        or position($10::bytea in substring(payload from 1 for 1048576)) > 0
           and hooks.payload_json(payload) #>> string_to_array($11::text, '.') = $12::text)
 order by received_at desc, id desc
 limit $13;

-- name: listEventsAfter :many
-- The live stream's next events above an id, oldest first; the ids are visible in order.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where id > $1
 order by id
 limit $2;

-- name: findEventAfter :optional
-- The first event above id $1 and up to $2, of one provider ($3) and one type ($4) or of all where that is null,
-- whose payload is as searchEvents compares it: bytes $5, member $6 at path $7 with value $8. Empty when there is none.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, payload, payload_size, attempts, received_at
  from hooks.events
 where id > $1
   and id <= $2
   and ($3::text is null or provider = $3)
   and ($4::text is null or event_type = $4)
   and ($5::bytea is null or position($5::bytea in substring(payload from 1 for 1048576)) > 0)
   and ($6::bytea is null
        or position($6::bytea in substring(payload from 1 for 1048576)) > 0
           and hooks.payload_json(payload) #>> string_to_array($7::text, '.') = $8::text)
 order by id
 limit 1;

-- name: streamBounds :one
-- Where a live stream can start: newest id that is or was stored, highest pruned id, and the id below which
-- the newest $1 events begin (0 when fewer are stored).
select greatest((select max(id) from hooks.events), s.pruned_through) as newest,
       s.pruned_through,
       coalesce((select id from hooks.events order by id desc offset $1 limit 1), 0)::bigint as before_tail
  from hooks.settings s;

-- name: listEndpoints :many
-- Every endpoint of the tool protocol, for the operator.
select name, may_replay, created_at, last_used_at
  from hooks.endpoints
 order by name;

-- name: listEndpointKeys :many
-- What a request's token is compared with.
select name, token_hash, may_replay
  from hooks.endpoints
 order by name;

-- name: addEndpoint :optional
-- A new endpoint; empty when the name is taken.
with added as (
  insert into hooks.endpoints (name, token_hash, may_replay)
  values ($1, $2, $3)
  on conflict (name) do nothing
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from added
)
select added.name from added left join told on true;

-- name: removeEndpoint :optional
-- Revokes an endpoint's token by removing both; empty when there is none under that name.
with removed as (
  delete from hooks.endpoints where name = $1 returning name
), told as (
  select pg_notify('hooks_config', '') as sent from removed
)
select removed.name from removed left join told on true;

-- name: touchEndpoint :exec
-- Notes a use, unless another instance has noted one less than a minute ago.
update hooks.endpoints
   set last_used_at = $2
 where name = $1
   and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute');

-- name: saveAttempt :optional
-- Records that event $1 was sent on and keeps its newest 200 attempts; empty when there is no such event.
with event as (
  select id from hooks.events where id = $1 for key share
), surplus as (
  delete from hooks.attempts
   where event_id = $1
     and id <= (select id from hooks.attempts where event_id = $1 order by id desc offset 199 limit 1)
)
insert into hooks.attempts (event_id, kind, target, outcome, status, ms, detail, at)
select id, $2, $3, $4, $5, $6, $7, $8
  from event
returning id;

-- name: listAttempts :many
-- Newest first.
select id, kind, target, outcome, status, ms, detail, at
  from hooks.attempts
 where event_id = $1
 order by id desc
 limit $2;

-- name: attachForwarder :one
-- A new connection of forwarder $1, at $3. A name that is new starts at position $2, or at the newest event when
-- that is null; a known one stands where it stood. Whoever had the name before is told.
with attached as (
  insert into hooks.forwarders (name, position, updated_at)
  select $1, coalesce($2::bigint, greatest((select max(id) from hooks.events), s.pruned_through)), $3
    from hooks.settings s
  on conflict (name) do update
     set connection = hooks.forwarders.connection + 1, updated_at = excluded.updated_at
  returning position, connection
), told as (
  select pg_notify('hooks_forwarders', '') as sent from attached
)
select a.position, a.connection from attached a left join told on true;

-- name: moveForwarder :optional
-- Notes that forwarder $1 is done with the events up to $3; empty when its connection $2 is no longer the newest.
update hooks.forwarders
   set position = greatest(position, $3), updated_at = $4
 where name = $1
   and connection = $2
returning position;

-- name: listForwarders :many
-- Where each forwarder stands, by name, with how many events are above its position, counted up to $1.
select f.name, f.position, f.updated_at,
       (select count(*) from (select from hooks.events e where e.id > f.position limit $1) above)::int as waiting
  from hooks.forwarders f
 order by f.name
 limit $2;

-- name: removeForwarder :optional
-- Forgets where a forwarder stands; empty when there is none of this name.
delete from hooks.forwarders where name = $1 returning name;

-- name: listConnections :many
-- The newest connection of each forwarder named in the JSON array $1.
select name, connection
  from hooks.forwarders
 where name in (select jsonb_array_elements_text($1::jsonb))
 order by name
 limit $2;
