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
