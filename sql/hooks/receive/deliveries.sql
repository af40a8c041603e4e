-- name: saveDeliveries
-- One batch: :bodies joined, and :rows, a JSON array of arrays (objects take twice as long to read; saveDeliveries in
-- db/hooks/receive/deliveries.ts has their order). Each row ends with its body's offset and length, and the length of its
-- reading, which follows the body. Types that are new to the caller become known, unless their provider has :most_types
-- already. The lock makes batches commit one after the other, so that no reader ever sees an id before a lower one. A row
-- whose delivery id is known only counts; it returns the first event.
with locked as materialized (
  select received_at, set_back_s from hooks.lock_log()
), incoming as materialized (
  select nextval('hooks.events_id_seq') as id, n::integer - 1 as n, l.received_at,
         (r ->> 0)::integer as body_check, (r ->> 1)::smallint as trust, r ->> 2 as provider, r ->> 3 as event_type,
         r ->> 4 as external_id, r ->> 5 as method, r ->> 6 as path, r ->> 7 as query, r ->> 8 as content_type,
         r ->> 9 as source_ip, r ->> 10 as headers, (r ->> 11)::integer as deliveries,
         (r ->> 12)::boolean as has_new_type,
         r ->> 13 as read_as,
         substring(:bodies::bytea from (r ->> 14)::integer + 1 for (r ->> 15)::integer) as payload,
         substring(:bodies::bytea from (r ->> 14)::integer + (r ->> 15)::integer + 1
                                  for (r ->> 16)::integer) as reading
    from locked l, jsonb_array_elements(:rows::jsonb) with ordinality as incoming(r, n)
), saved as (
  insert into hooks.events (id, received_at, body_check, trust, provider, event_type, external_id, method, path,
                            query, content_type, source_ip, headers, payload, reading, read_as)
  select id, received_at, body_check, trust, provider, event_type, external_id, method, path,
         query, content_type, source_ip, headers, payload, reading, read_as
    from incoming
   order by n
  -- Changes nothing, but locks the known event, so that retention can't remove it before it is returned.
  on conflict (hooks.delivery_key(provider, external_id)) where external_id is not null
  do update set trust = excluded.trust where false
  returning id
), answered as (
  select i.n, i.id, i.trust, i.received_at, true as fresh, i.provider, i.deliveries
    from incoming i
    join saved s on s.id = i.id
   union all
  select i.n, k.id, k.trust, k.received_at, false, i.provider, i.deliveries
    from incoming i
    left join saved s on s.id = i.id
    cross join lateral hooks.find_delivery(i.provider, i.external_id) k
   where s.id is null
), repeated as (
  insert into hooks.repeats (event_id, deliveries)
  select id, case when fresh then deliveries - 1 else deliveries end
    from answered
   where deliveries > 1 or not fresh
  on conflict (event_id) do update set deliveries = hooks.repeats.deliveries + excluded.deliveries
), counted as (
  insert into hooks.activity (provider, minute, events)
  select provider, date_trunc('minute', received_at), count(*)
    from answered
   where fresh
   group by 1, 2
  on conflict (provider, minute) do update set events = hooks.activity.events + excluded.events
), typed as (
  insert into hooks.event_types (provider, event_type)
  select distinct i.provider, i.event_type
    from incoming i
   where i.has_new_type
     and (select count(*) from hooks.event_types t where t.provider = i.provider) < :most_types
  on conflict do nothing
), stepped as (
  insert into hooks.clock_steps (event_id, set_back_s)
  select min(i.id), l.set_back_s
    from locked l
   cross join incoming i
   where l.set_back_s is not null
   group by l.set_back_s
), notified as (
  select pg_notify('hooks_events', max(id)::text) as sent
    from answered
   where fresh
  having count(*) > 0
)
select a.n, a.id, hooks.trust_mode(a.trust) as trust_mode, hooks.verified(a.trust) as verified, a.received_at,
       l.set_back_s
  from answered a
 cross join locked l
  left join notified on true
 order by a.n;
