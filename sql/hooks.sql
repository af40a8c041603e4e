-- name: saveEvents :many
-- One batch: $1 all bodies joined, $2 a JSON array of rows, each an array (saveEvents in db/hooks/events.ts has its
-- order; objects take twice as long to read) that ends with its body's offset in $1 and length. Writers take turns
-- by the advisory lock until they commit, so that no reader ever sees an id before a lower one. A row whose
-- delivery id is known only raises attempts; it returns the first event with fresh = false. The signature of
-- code_host covers neither type nor delivery id: a body that comes again keeps the type that it came with first.
with turn as materialized (
  select pg_advisory_xact_lock(7203001)
), incoming as materialized (
  select nextval('hooks.events_id_seq') as id, n::integer - 1 as n,
         r ->> 0 as provider, r ->> 1 as event_type, r ->> 2 as trust_mode, (r ->> 3)::boolean as verified,
         r ->> 4 as verify_detail, r ->> 5 as external_id, r ->> 6 as content_type, r ->> 7 as source_ip,
         r -> 8 as headers, decode(r ->> 9, 'hex') as body_hash, (r ->> 10)::integer as attempts,
         (r ->> 11)::timestamptz as received_at, (r ->> 12)::integer as body_at, (r ->> 13)::integer as body_length
    from turn, jsonb_array_elements($2::jsonb) with ordinality as incoming(r, n)
), saved as (
  insert into hooks.events (id, provider, event_type, trust_mode, verified, verify_detail, external_id,
                            content_type, source_ip, headers, payload, body_hash, attempts, received_at)
  overriding system value
  select id, provider,
         case when provider = 'code_host' then hooks.first_event_type(provider, body_hash, event_type)
              else event_type end,
         trust_mode, verified, verify_detail, external_id, content_type, source_ip, headers,
         substring($1::bytea from body_at + 1 for body_length), body_hash, attempts, received_at
    from incoming
   order by n
  on conflict (provider, external_id) do update set attempts = hooks.events.attempts + excluded.attempts
  returning id, provider, external_id, trust_mode, verified, received_at
), answered as (
  select i.n, coalesce(f.id, k.id) as id, coalesce(f.trust_mode, k.trust_mode) as trust_mode,
         coalesce(f.verified, k.verified) as verified, coalesce(f.received_at, k.received_at) as received_at,
         f.id is not null as fresh, i.provider
    from incoming i
    left join saved f on f.id = i.id
    left join saved k on k.provider = i.provider and k.external_id = i.external_id
), counted as (
  insert into hooks.activity (provider, minute, events)
  select provider, date_trunc('minute', received_at), count(*)
    from answered
   where fresh
   group by 1, 2
  on conflict (provider, minute) do update set events = hooks.activity.events + excluded.events
), told as (
  select pg_notify('hooks_events', max(id)::text) as sent
    from answered
   where fresh
  having count(*) > 0
)
select a.n, a.id, a.trust_mode, a.verified, a.received_at, a.fresh
  from answered a
  left join told on true
 order by a.n;

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

-- name: listProviders :many
-- Every provider with its events of the last 24 hours ($1 = since) and its last event, and with what its alarms
-- look at: when it was heard last (to the minute where retention removed that event) and the refusals since $2.
select p.name, p.family, p.trust_mode, p.enabled, p.token_hash, p.signing_secret,
       p.retired_until, p.rotated_at, p.last_secret, p.last_secret_at,
       p.expected_interval_s, p.rejection_burst, p.watched_since,
       coalesce(a.events, 0)::integer as recent_count,
       e.received_at as last_event_at,
       coalesce(e.received_at, h.heard_at) as heard_at,
       coalesce(r.refused, 0)::integer as refused_count
  from hooks.providers p
  left join lateral (
         select sum(events) as events from hooks.activity where provider = p.name and minute >= $1
       ) a on true
  left join lateral (
         select received_at from hooks.events where provider = p.name
          order by received_at desc, id desc limit 1
       ) e on true
  left join lateral (
         select minute + interval '1 minute' as heard_at from hooks.activity where provider = p.name
          order by minute desc limit 1
       ) h on true
  left join lateral (
         select sum(refused) as refused from hooks.refusals where provider = p.name and minute > $2
       ) r on true
 order by p.name like '%:%', p.name;

-- name: listSenders :many
-- What the receivers check of every provider, and whether an alarm is set.
select name, trust_mode, enabled, token_hash, retired_hash, signing_secret, retired_signing_secret,
       retired_until, rotated_at,
       expected_interval_s is not null or rejection_burst is not null as watched
  from hooks.providers
 order by name;

-- name: listActivity :many
-- Events per provider and hour since $1, oldest first: the dashboard's small charts.
select provider, date_trunc('hour', minute) as hour, sum(events)::integer as events
  from hooks.activity
 where minute >= $1
 group by provider, date_trunc('hour', minute)
 order by provider, hour;

-- name: addProvider :optional
-- A new generic provider; empty when the name is taken.
with added as (
  insert into hooks.providers (name, family, trust_mode, enabled, token_hash, signing_secret)
  values ($1, 'webhook', $2, $3, $4, $5)
  on conflict (name) do nothing
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from added
)
select added.name from added left join told on true;

-- name: addQueueProviders :exec
-- Makes the providers of channels known, enabled: $1 their names. One that is known stays as an operator set it.
with added as (
  insert into hooks.providers (name, family, trust_mode, enabled)
  select name, 'queue', 'queue', true
    from jsonb_array_elements_text($1::jsonb) as name
  on conflict (name) do nothing
  returning name
)
select pg_notify('hooks_config', '') from added;

-- name: enableProvider :optional
-- Sets what the operator wants; empty when there is no such provider. Being enabled at $3 is when silence begins.
with changed as (
  update hooks.providers
     set enabled = $2,
         watched_since = case when $2 and not enabled then $3 else watched_since end
   where name = $1
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join told on true;

-- name: rotateToken :optional
-- Replaces a generic provider's token at $3; the old one is accepted until $4 (null: no longer). Empty when there
-- is none with a token under that name.
with changed as (
  update hooks.providers
     set token_hash = $2, retired_hash = token_hash, rotated_at = $3, retired_until = $4,
         last_secret = case last_secret when 'current' then 'previous' end
   where name = $1 and trust_mode = 'token'
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join told on true;

-- name: rotateSigningSecret :optional
-- As rotateToken, of a generic provider that signs: empty when there is none under that name.
with changed as (
  update hooks.providers
     set signing_secret = $2, retired_signing_secret = signing_secret, rotated_at = $3, retired_until = $4,
         last_secret = case last_secret when 'current' then 'previous' end
   where name = $1 and trust_mode = 'signed' and name like 'generic:%'
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join told on true;

-- name: saveSecretUses :exec
-- Which secret was used last: $1 a JSON array. A use of before the rotation that we have seen by now says nothing;
-- the three senders whose secrets are configured are never rotated here. All writers lock in one order.
with used as (
  select provider, secret, at, rotated_at
    from jsonb_to_recordset($1::jsonb) as u(provider text, secret text, at timestamptz, rotated_at timestamptz)
), known as materialized (
  select p.name
    from hooks.providers p
   where p.name in (select provider from used)
   order by p.name
     for no key update
)
update hooks.providers p
   set last_secret = u.secret, last_secret_at = u.at
  from used u
  join known k on k.name = u.provider
 where p.name = k.name
   and p.rotated_at is not distinct from u.rotated_at
   and (p.last_secret_at is null or p.last_secret_at < u.at);

-- name: setAlarm :optional
-- Sets the interval ($3) when $2, the burst ($5) when $4; null turns an alarm off. A new interval is counted from
-- $6. Empty when there is no such provider.
with changed as (
  update hooks.providers
     set expected_interval_s = case when $2 then $3 else expected_interval_s end,
         rejection_burst = case when $4 then $5 else rejection_burst end,
         watched_since = case when $2 and expected_interval_s is distinct from $3 then $6 else watched_since end
   where name = $1
  returning name
), told as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join told on true;

-- name: removeProvider :optional
-- Removes a generic or queue provider and keeps its events; empty when there is none, or it is one of the three
-- that are always there, whose names have no prefix.
with removed as (
  delete from hooks.providers where name = $1 and name like '%:%' returning name
), told as (
  select pg_notify('hooks_config', '') as sent from removed
)
select removed.name from removed left join told on true;

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

-- name: readSettings :one
select retention_max_age_days, retention_max_rows, sse_retry_ms, replay_default_target
  from hooks.settings;

-- name: writeSettings :exec
-- A null keeps the value; the target may become null, where $5 says that it is given.
with changed as (
  update hooks.settings
     set retention_max_age_days = coalesce($1, retention_max_age_days),
         retention_max_rows = coalesce($2, retention_max_rows),
         sse_retry_ms = coalesce($3, sse_retry_ms),
         replay_default_target = case when $5 then $4 else replay_default_target end
  returning only_row
)
select pg_notify('hooks_config', '') from changed;

-- name: pruneByAge :one
-- Removes at most $2 events received before $1 and remembers the highest id; count 0 means done.
with old as (
  select id from hooks.events where received_at < $1 order by received_at limit $2 for update skip locked
), removed as (
  delete from hooks.events where id in (select id from old) returning id
), marked as (
  update hooks.settings
     set pruned_through = greatest(pruned_through, (select max(id) from removed))
   where exists (select from removed)
)
select count(*)::integer as removed from removed;

-- name: pruneByCount :one
-- Removes at most $2 of the oldest events beyond the newest $1 and remembers the highest id; 0 means done.
with surplus as (
  select id from hooks.events
   where id <= coalesce((select id from hooks.events order by id desc offset $1 limit 1), 0)
   order by id
   limit $2
     for update skip locked
), removed as (
  delete from hooks.events where id in (select id from surplus) returning id
), marked as (
  update hooks.settings
     set pruned_through = greatest(pruned_through, (select max(id) from removed))
   where exists (select from removed)
)
select count(*)::integer as removed from removed;

-- name: pruneActivity :exec
-- Keeps the newest minute of each provider: when it was heard last is known after its events are gone.
delete from hooks.activity a
 where minute < $1
   and exists (select from hooks.activity newer where newer.provider = a.provider and newer.minute > a.minute);

-- name: pruneForwarders :exec
-- Forgets forwarders that have neither connected nor moved since $2, $3 being now; those whose names are in the JSON
-- array $1 are connected to this process, idle or not.
with connected as (
  update hooks.forwarders
     set updated_at = $3
   where name in (select jsonb_array_elements_text($1::jsonb))
)
delete from hooks.forwarders
 where updated_at < $2
   and name not in (select jsonb_array_elements_text($1::jsonb));
