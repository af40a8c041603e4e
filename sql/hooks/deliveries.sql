-- name: saveDeliveries
-- One batch: :bodies joined, and :rows, a JSON array of arrays (objects take twice as long to read; saveDeliveries in
-- db/hooks/deliveries.ts has their order), each of which ends with its body's offset and length. The advisory lock
-- makes batches commit one after the other, so that no reader ever sees an id before a lower one. A row whose delivery
-- id is known only raises attempts; it returns the first event with fresh = false. The signature of code_host covers
-- neither type nor delivery id: a body that is delivered again keeps the type of its first delivery.
with locked as materialized (
  select pg_advisory_xact_lock(7203001)
), incoming as materialized (
  select nextval('hooks.events_id_seq') as id, n::integer - 1 as n,
         r ->> 0 as provider, r ->> 1 as event_type, r ->> 2 as trust_mode, (r ->> 3)::boolean as verified,
         r ->> 4 as verify_detail, r ->> 5 as external_id, r ->> 6 as content_type, r ->> 7 as source_ip,
         r -> 8 as headers, decode(r ->> 9, 'hex') as body_hash, (r ->> 10)::integer as deliveries,
         (r ->> 11)::timestamptz as received_at, (r ->> 12)::integer as body_at, (r ->> 13)::integer as body_length
    from locked, jsonb_array_elements(:rows::jsonb) with ordinality as incoming(r, n)
), saved as (
  insert into hooks.events (id, provider, event_type, trust_mode, verified, verify_detail, external_id,
                            content_type, source_ip, headers, payload, body_hash, attempts, received_at)
  overriding system value
  select id, provider,
         case when provider = 'code_host' then hooks.first_event_type(provider, body_hash, event_type)
              else event_type end,
         trust_mode, verified, verify_detail, external_id, content_type, source_ip, headers,
         substring(:bodies::bytea from body_at + 1 for body_length), body_hash, deliveries, received_at
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
), notified as (
  select pg_notify('hooks_events', max(id)::text) as sent
    from answered
   where fresh
  having count(*) > 0
)
select a.n, a.id, a.trust_mode, a.verified, a.received_at, a.fresh
  from answered a
  left join notified on true
 order by a.n;
