-- name: findEvent
-- Empty when no such event is stored, or retention removed it.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, payload, payload_size, attempts, received_at
  from hooks.events
 where id = :id;

-- name: findEventStart
-- As findEvent, but reads only the first :bytes bytes of the payload. Empty when no such event is stored.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, substring(payload from 1 for :bytes) as payload, payload_size, attempts, received_at
  from hooks.events
 where id = :id;

-- name: findSameBody
-- The first signed event of the same provider with the same body. Empty when this event is the first.
select id
  from hooks.events
 where trust_mode = 'signed'
   and body_hash = (select body_hash from hooks.events where id = :id)
   and provider = (select provider from hooks.events where id = :id)
   and id < :id
 order by id
 limit 1;

-- name: listEvents
-- A page of the log, newest first, below the keyset position (:before_time, :before_id).
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where (received_at, id) < (:before_time, :before_id)
   and (:since_time::timestamptz is null or received_at >= :since_time)
   and (:since_id::bigint is null or id >= :since_id)
 order by received_at desc, id desc
 limit :limit;

-- name: listEventsOfProvider
-- As listEvents, of one provider: a query of its own, so that the plan always uses its index.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where provider = :provider
   and (received_at, id) < (:before_time, :before_id)
   and (:since_time::timestamptz is null or received_at >= :since_time)
   and (:since_id::bigint is null or id >= :since_id)
 order by received_at desc, id desc
 limit :limit;

-- name: listEventsOfType
-- As listEvents, of one event type, from one provider or, when :provider is null, from all.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where event_type = :event_type
   and (received_at, id) < (:before_time, :before_id)
   and (:since_time::timestamptz is null or received_at >= :since_time)
   and (:since_id::bigint is null or id >= :since_id)
   and (:provider::text is null or provider = :provider)
 order by received_at desc, id desc
 limit :limit;

-- name: searchWindowEnd
-- Where one step of a search ends: :rows events below the position, or at the event whose payload exceeds a total
-- of :bytes bytes. Empty when fewer events are left.
select received_at, id
  from (select received_at, id,
               row_number() over position as place,
               sum(payload_size) over position as bytes
          from (select received_at, id, payload_size
                  from hooks.events
                 where (received_at, id) < (:before_time, :before_id)
                 order by received_at desc, id desc
                 limit :rows) nearest
        window position as (order by received_at desc, id desc)) step
 where place = :rows
    or bytes > :bytes
 order by received_at desc, id desc
 limit 1;

-- name: searchWindowThrough
-- The same upwards from :after to :last: the event whose payload exceeds a total of :bytes bytes. Empty when none does.
select id
  from (select id, sum(payload_size) over (order by id) as bytes
          from hooks.events
         where id > :after
           and id <= :last) step
 where bytes > :bytes
 order by id
 limit 1;

-- name: findIdBelow
-- The lowest id from :from_id on whose event is below a position: there a search by id goes on. Scans at most :ids ids;
-- if none of those matches, returns the last scanned id as the resume point. Empty when no id is left.
select id
  from (select id, received_at, row_number() over (order by id) as place
          from hooks.events
         where id >= :from_id
         order by id
         limit :ids) looked
 where (received_at, id) < (:before_time, :before_id)
    or place = :ids
 order by id
 limit 1;

-- name: searchEvents
-- The events between two positions whose payload contains the bytes :text in its first MiB and has :value at the JSON
-- path :path. The bytes :member, the name of the JSON member, rule most payloads out before they are parsed. position()
-- may take time proportional to the product of both lengths: the first MiB bounds it.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where (received_at, id) < (:before_time, :before_id)
   and (received_at, id) >= (:end_time, :end_id)
   and (:provider::text is null or provider = :provider)
   and (:event_type::text is null or event_type = :event_type)
   and (:since_time::timestamptz is null or received_at >= :since_time)
   and (:since_id::bigint is null or id >= :since_id)
   and (:text::bytea is null or position(:text::bytea in substring(payload from 1 for 1048576)) > 0)
   and (:member::bytea is null
        or position(:member::bytea in substring(payload from 1 for 1048576)) > 0
           and hooks.payload_json(payload) #>> string_to_array(:path::text, '.') = :value::text)
 order by received_at desc, id desc
 limit :limit;

-- name: listEventsAfter
-- The next events above an id, oldest first. Ids become visible in order, so a reader skips none.
select id, provider, event_type, trust_mode, verified, payload_size, received_at
  from hooks.events
 where id > :after
 order by id
 limit :limit;

-- name: findEventAfter
-- The first event above :after and up to :last that matches the filters; null filters match all. Payloads are compared
-- as in searchEvents. Empty when no event matches.
select id, provider, event_type, trust_mode, verified, verify_detail, external_id, content_type, source_ip,
       headers, payload, payload_size, attempts, received_at
  from hooks.events
 where id > :after
   and id <= :last
   and (:provider::text is null or provider = :provider)
   and (:event_type::text is null or event_type = :event_type)
   and (:text::bytea is null or position(:text::bytea in substring(payload from 1 for 1048576)) > 0)
   and (:member::bytea is null
        or position(:member::bytea in substring(payload from 1 for 1048576)) > 0
           and hooks.payload_json(payload) #>> string_to_array(:path::text, '.') = :value::text)
 order by id
 limit 1;

-- name: streamBounds
-- Where a stream can start: the newest id that is or was stored, the highest removed id, and the id below which the
-- newest :replayed events begin (0 when fewer are stored).
select greatest((select max(id) from hooks.events), s.pruned_through) as newest,
       s.pruned_through,
       coalesce((select id from hooks.events order by id desc offset :replayed limit 1), 0)::bigint as before_tail
  from hooks.settings s;
