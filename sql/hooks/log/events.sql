-- name: findEvent
-- Empty when no such event is stored, or retention removed it.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       hooks.verify_detail(e.trust) as verify_detail, e.external_id, e.content_type, e.source_ip,
       e.method, e.query, e.headers, e.payload, length(e.payload) as payload_size,
       e.reading, e.read_as,
       1 + coalesce(r.deliveries, 0) as attempts, e.received_at
  from hooks.events e
  left join hooks.repeats r on r.event_id = e.id
 where e.id = :id;

-- name: findEventStart
-- As findEvent, with its request line, but only the first :bytes bytes of the payload, and of its reading. Empty when no
-- such event is stored.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       hooks.verify_detail(e.trust) as verify_detail, e.external_id, e.content_type, e.source_ip,
       e.method, e.path, e.query,
       e.headers, substring(e.payload from 1 for :bytes) as payload, length(e.payload) as payload_size,
       substring(e.reading from 1 for :bytes) as reading, length(e.reading) as reading_size, e.read_as,
       1 + coalesce(r.deliveries, 0) as attempts, e.received_at
  from hooks.events e
  left join hooks.repeats r on r.event_id = e.id
 where e.id = :id;

-- name: findPayloadPart
-- Some :bytes of a payload after the first :skipped ones, and its length. Empty when no such event is stored.
select substring(payload from :skipped + 1 for :bytes) as part, length(payload) as payload_size
  from hooks.events
 where id = :id;

-- name: findSameBody
-- The first signed event of the same provider with the same body. Empty when this event is the first.
select first.id, first.event_type
  from hooks.events e
 cross join lateral (
       select id, event_type
         from hooks.events
        where hooks.body_key(body_check, id) >= hooks.body_key(e.body_check, 0)
          and hooks.body_key(body_check, id) < hooks.body_key(e.body_check, e.id)
          and body_check = e.body_check and provider = e.provider and payload = e.payload
        order by hooks.body_key(body_check, id)
        limit 1
       ) first
 where e.id = :id;

-- name: findNeighbours
-- The events before and after an event: in the log, and of its provider. Empty when the event is gone. Only
-- events_of_provider is in the order of rows (provider_key, id): the primary key would pass events of all other providers.
select (select max(id) from hooks.events where id < e.id and id > s.pruned_through) as previous,
       (select min(id) from hooks.events where id > e.id) as next,
       (select id
          from hooks.events
         where (provider_key, id) < (e.provider_key, e.id) and (provider_key, id) > (e.provider_key, s.pruned_through)
         order by provider_key desc, id desc
         limit 1) as previous_of_provider,
       (select id
          from hooks.events
         where (provider_key, id) > (e.provider_key, e.id) and provider_key <= e.provider_key
         order by provider_key, id
         limit 1) as next_of_provider
  from hooks.events e
 cross join hooks.settings s
 where e.id = :id;

-- name: firstIdSince
-- The lowest id of an event received at a time or later.
select hooks.first_id_since(:since) as id;

-- name: newestInFuture
-- The newest event with a time in the future: one of those before a clock step, or the newest of all. Empty if every
-- time is in the past.
select e.id, e.received_at
  from (select event_id as next from hooks.clock_steps
         union all
        select max(id) + 1 from hooks.events) s
 cross join lateral (select id, received_at from hooks.events where id < s.next order by id desc limit 1) e
 where e.received_at > clock_timestamp() + interval '5 seconds'
 order by e.id desc
 limit 1;

-- name: listEvents
-- A page of the log, newest first: events below the id :before, from the id :from on. Null filters match all.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       length(e.payload) as payload_size, e.received_at
  from hooks.newest_ids(:provider, :event_type, :type_like, :before, :from, :limit) as newest(id)
  join hooks.events e on e.id = newest.id
 order by e.id desc
 limit :limit;

-- name: listTimes
-- When the same events were received.
select e.received_at
  from hooks.newest_ids(:provider, :event_type, :type_like, :before, :from, :limit) as newest(id)
  join hooks.events e on e.id = newest.id
 order by e.id desc
 limit :limit;

-- name: countIds
-- How many of the same events there are, and the newest of them; null without any.
select count(*) as count, max(newest.id) as newest
  from hooks.newest_ids(:provider, :event_type, :type_like, :before, :from, :limit) as newest(id);

-- name: listUnfilteredTimes
-- As listTimes, without filters: the events of a range are next to each other.
select e.received_at
  from hooks.events e
 where e.id < :before
   and e.id >= greatest(:from, (select pruned_through + 1 from hooks.settings))
 order by e.id desc
 limit :limit;

-- name: listUnfiltered
-- As listEvents, without filters.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       length(e.payload) as payload_size, e.received_at
  from hooks.events e
 where e.id < :before
   and e.id >= greatest(:from, (select pruned_through + 1 from hooks.settings))
 order by e.id desc
 limit :limit;

-- name: listBeginnings
-- Method, query and the first :bytes bytes of what is read of some events; :ids is a JSON list.
select e.id, e.method, e.query, substring(coalesce(e.reading, e.payload) from 1 for :bytes) as start,
       length(coalesce(e.reading, e.payload)) as size, case when e.reading is null then e.read_as end as problem
  from hooks.events e
 where e.id in (select value::bigint from jsonb_array_elements_text(:ids::jsonb));

-- name: listMatches
-- Where :text is in the first :searched bytes of what is read of some events; :ids is a JSON list. :around
-- bytes are read, :before of them before the match. Events without a match there are left out.
select id, start, substring(body from start for :around) as around
  from (select id, body,
               nullif(hooks.text_position(body, :searched, :text), 0) as found
          from (select id, coalesce(reading, payload) as body from hooks.events) read
         where id in (select value::bigint from jsonb_array_elements_text(:ids::jsonb))) searched
 cross join lateral (select greatest(1, found - :before) as start) begun
 where found is not null;

-- name: listTypes
-- Event types that are known of a provider, or of all.
select distinct event_type
  from hooks.event_types
 where :provider::text is null or provider = :provider
 order by event_type
 limit :limit;

-- name: matchTypes
-- How many known types are like a filter, counted up to :limit, and whether all types are known: a provider with
-- :most of them may have more.
select (select count(*)
          from (select from hooks.event_types
                 where (:provider::text is null or provider = :provider)
                   and hooks.is_like(event_type, :type_like)
                 limit :limit) t) as count,
       not exists (select from hooks.event_types
                    where :provider::text is null or provider = :provider
                    group by provider
                   having count(*) >= :most) as are_all;

-- name: listStored
-- Events with everything that is stored of them, newest first; :ids is a JSON list.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       hooks.verify_detail(e.trust) as verify_detail, e.external_id, e.content_type, e.source_ip,
       e.method, e.query, e.headers, e.payload, length(e.payload) as payload_size,
       e.reading, e.read_as,
       1 + coalesce(r.deliveries, 0) as attempts, e.received_at
  from hooks.events e
  left join hooks.repeats r on r.event_id = e.id
 where e.id in (select value::bigint from jsonb_array_elements_text(:ids::jsonb))
 order by e.id desc;

-- name: searchWindowEnd
-- Where one step of a search ends: :rows events of the filters below :before, or at the event whose payload exceeds a
-- total of :bytes bytes. Empty when fewer events are left.
select id, received_at
  from (select e.id, e.received_at, row_number() over newest as place,
               sum(length(coalesce(e.reading, e.payload))) over newest as bytes
          from hooks.newest_ids(:provider, :event_type, :type_like, :before, :from, :rows) as n(id)
          join hooks.events e on e.id = n.id
        window newest as (order by e.id desc)) step
 where place = :rows
    or bytes > :bytes
 order by id desc
 limit 1;

-- name: searchWindowThrough
-- The same upwards from :after, without filters. Empty when fewer events are left.
select id
  from (select id, row_number() over oldest as place, sum(length) over oldest as bytes
          from (select id, length(coalesce(reading, payload)) as length
                  from hooks.events
                 where id > :after
                 order by id
                 limit :rows) next
        window oldest as (order by id)) step
 where place = :rows
    or bytes > :bytes
 order by id
 limit 1;

-- name: searchEvents
-- The events of one step whose payload contains :text in its first MiB and has the :members of its JSON, and
-- that have the :header. The bytes :member, the name of one of the members, rule most payloads out before they are
-- parsed, and :header does so with headers. position() may take time proportional to the product of both lengths: the
-- first MiB bounds it. `offset 0` has each event looked up by its id before its payload is tested: of a table that
-- seems small, every payload would be tested at each step.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       length(e.payload) as payload_size, e.received_at
  from hooks.newest_ids(:provider, :event_type, :type_like, :before, :from, :rows) as newest(id)
 cross join lateral (select * from hooks.events where id = newest.id offset 0) e
 where (:text::bytea is null or hooks.text_position(coalesce(e.reading, e.payload), 1048576, :text) > 0)
   and (:member::bytea is null
        or position(:member::bytea in substring(coalesce(e.reading, e.payload) from 1 for 1048576)) > 0
           and hooks.has_members(coalesce(e.reading, e.payload), :members::jsonb))
   and (:verified::boolean is null or hooks.verified(e.trust) = :verified)
   and (:test_type::text is null or hooks.is_like(e.event_type, :test_type))
   and (:header::text is null
        or position(:header in lower(e.headers)) > 0
           and hooks.has_header(e.headers, :header, :header_value::text))
 order by e.id desc
 limit :limit;

-- name: listEventsAfter
-- The next events above an id, oldest first. Ids become visible in order, so a reader skips none.
select id, provider, event_type, hooks.trust_mode(trust) as trust_mode, hooks.verified(trust) as verified,
       length(payload) as payload_size, received_at
  from hooks.events
 where id > :after
 order by id
 limit :limit;

-- name: findEventAfter
-- The first event above :after and up to :last that matches the filters; null filters match all. Payloads are compared
-- as in searchEvents. Empty when no event matches.
select e.id, e.provider, e.event_type, hooks.trust_mode(e.trust) as trust_mode, hooks.verified(e.trust) as verified,
       hooks.verify_detail(e.trust) as verify_detail, e.external_id, e.content_type, e.source_ip,
       e.method, e.query, e.headers, e.payload, length(e.payload) as payload_size,
       e.reading, e.read_as,
       1 + coalesce(r.deliveries, 0) as attempts, e.received_at
  from hooks.events e
  left join hooks.repeats r on r.event_id = e.id
 where e.id > :after
   and e.id <= :last
   and (:provider::text is null or e.provider = :provider)
   and (:event_type::text is null or e.event_type = :event_type)
   and (:text::bytea is null or hooks.text_position(coalesce(e.reading, e.payload), 1048576, :text) > 0)
   and (:member::bytea is null
        or position(:member::bytea in substring(coalesce(e.reading, e.payload) from 1 for 1048576)) > 0
           and hooks.has_members(coalesce(e.reading, e.payload), :members::jsonb))
 order by e.id
 limit 1;

-- name: streamBounds
-- Where a stream can start: the newest id that is or was stored, the highest removed id, and the id below which the
-- newest :replayed events begin (0 when fewer are stored).
select greatest((select max(id) from hooks.events), s.pruned_through) as newest,
       s.pruned_through,
       coalesce((select id from hooks.events order by id desc offset :replayed limit 1), 0)::bigint as before_tail
  from hooks.settings s;
