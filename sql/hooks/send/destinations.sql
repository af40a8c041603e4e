-- name: listTargets
-- What the workers need to know of each destination. `failed`: it was disabled because deliveries failed. Of replay jobs
-- only those that send are there.
select name, kind, url, ordered, rate, timeout_s, body_template, sign_scheme, sign_secret, auth, headers,
       disabled_at is null as enabled, coalesce(disabled_by = 'failures', false) as failed
  from hooks.destinations
 where disabled_by is distinct from 'removal'
   and disabled_by is distinct from 'job'
 order by name;

-- name: listDestinations
-- The destinations by name, or the one of a name, with the number of waiting events, up to :count_up_to, and the time of
-- the oldest. Counted in the order of an index: the planner would otherwise read the rows of all destinations to find
-- those of one.
select d.name, d.version::text, d.url, d.providers, d.event_types,
       coalesce((select jsonb_agg(m ->> 0 || '=' || (m ->> 1)) from jsonb_array_elements(d.members) m), '[]') as json,
       d.ordered, d.rate, d.timeout_s, d.body_template,
       case when d.sign_scheme is not null
            then jsonb_build_object('scheme', d.sign_scheme, 'secret', 'configured') end as sign_with,
       coalesce((select jsonb_object_agg(name, 'configured') from jsonb_object_keys(d.headers) as name), '{}') as headers,
       case when d.auth is not null then 'configured' end as authorization,
       d.created_at, d.disabled_at, d.disabled_by, hooks.is_failing(d) as failing,
       d.position, d.delivered, d.gap, d.gap_through,
       d.last_at, d.last_status, d.last_detail, d.mean_ms,
       (select count(*)
          from (select from hooks.destination_deliveries
                 where destination = d.name and next_at is not null
                 order by event_id limit :count_up_to) w)::int as waiting,
       (select count(*)
          from (select from hooks.destination_deliveries
                 where destination = d.name and next_at is null
                 order by event_id limit :count_up_to) w)::int as dead,
       (select received_at from hooks.events
         where id = (select min(event_id) from hooks.destination_deliveries
                      where destination = d.name and next_at is not null)) as oldest_at
  from hooks.destinations d
 where (:name::text is null or d.name = :name)
   and d.kind = 'standing'
   and d.disabled_by is distinct from 'removal'
 order by d.name;

-- name: listFailing
-- The destinations that need somebody, by name.
select d.name, d.disabled_by, d.last_at, d.last_status, d.last_detail
  from hooks.destinations d
 where d.kind = 'standing'
   and d.disabled_by is distinct from 'removal'
   and hooks.is_failing(d)
 order by d.name;

-- name: countMatches
-- How many of the newest :rows events the filters of a destination want, and of how many. They end where the payloads
-- before exceed :bytes bytes. Provider and type are tested once for all events that have both, payloads one by one: only
-- those that are tested are read.
with newest as materialized (
  select id, provider, event_type, sum(length) over (order by id desc) - length as before
    from (select id, provider, event_type, length(coalesce(reading, payload)) as length
            from hooks.events
           where id > (select pruned_through from hooks.settings)
           order by id desc
           limit :rows) e
), filters as materialized (
  select d from jsonb_populate_record(null::hooks.destinations, :filters::jsonb) d
), kinds as materialized (
  select k.provider, k.event_type, hooks.is_wanted(f.d, k.provider, k.event_type, null) as wanted
    from (select distinct provider, event_type from newest) k
   cross join (select jsonb_populate_record(d, '{"members": []}') as d from filters) f
)
select count(*) filter (where case when k.wanted
                                   then (f.d).members = '[]'
                                        or hooks.is_wanted(f.d, n.provider, n.event_type,
                                                           (select coalesce(reading, payload)
                                                              from hooks.events where id = n.id))
                              end)::integer as matched,
       count(*)::integer as events
  from newest n
  join kinds k on k.provider = n.provider and k.event_type is not distinct from n.event_type
 cross join filters f
 where n.before < :bytes;

-- name: lockConfig
-- What was configured of a destination, which is held until the transaction ends. Empty for an unknown name.
select version::text, url, providers, position, sign_scheme, sign_secret, auth, headers
  from hooks.destinations
 where name = :name
   and kind = 'standing'
   and disabled_by is distinct from 'removal'
   for no key update;

-- name: addDestination
-- A new destination gets the events after :position, or those from now on. Empty when the name is taken or there are
-- :most already.
with added as (
  insert into hooks.destinations (name, url, providers, event_types, members, ordered, rate, timeout_s, body_template,
                                  sign_scheme, sign_secret, auth, headers, position)
  select :name, :url, :providers, :event_types, :members, :ordered, :rate, :timeout_s, :body_template,
         :sign_scheme, :sign_secret, :auth, :headers,
         greatest(least(:position, coalesce((select max(id) from hooks.events), 0)), s.pruned_through)
    from hooks.settings s
   where (select count(*)
            from hooks.destinations
           where kind = 'standing' and disabled_by is distinct from 'removal') < :most
  on conflict (name) do nothing
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from added
)
select added.name from added left join notified on true;

-- name: setDestination
-- Changes the settings of a destination, and with :position the event from which it searches again. Waiting deliveries
-- stay.
with changed as (
  update hooks.destinations
     set version = gen_random_uuid(), url = :url, providers = :providers, event_types = :event_types, members = :members,
         ordered = :ordered, rate = :rate, timeout_s = :timeout_s, body_template = :body_template,
         sign_scheme = :sign_scheme, sign_secret = :sign_secret, auth = :auth, headers = :headers,
         position = coalesce(:position, position)
   where name = :name
  returning name
)
select pg_notify('hooks_config', '') from changed;

-- name: enableDestination
-- No row if no destination has this name. A destination that is enabled again gets the events since it was disabled.
with changed as (
  update hooks.destinations
     set disabled_at = case when :enabled then null else coalesce(disabled_at, now()) end,
         disabled_by = case when :enabled then null else 'operator' end,
         dead_in_row = case when :enabled then 0 else dead_in_row end
   where name = :name
     and kind = 'standing'
     and disabled_by is distinct from 'removal'
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: removeDestination
-- Begins the removal of a destination: from now on it gets nothing and is not listed. Empty for an unknown name.
with changed as (
  update hooks.destinations
     set disabled_at = coalesce(disabled_at, now()), disabled_by = 'removal'
   where name = :name
     and kind = 'standing'
     and disabled_by is distinct from 'removal'
  returning name
), notified as (
  select pg_notify('hooks_config', '') as sent from changed
)
select changed.name from changed left join notified on true;

-- name: listRemovals
-- The destinations that are being removed.
select name from hooks.destinations where disabled_by = 'removal' order by name;

-- name: removeDeliveries
-- One step of a removal, from event :from on, and the event to go on from; null at the end. Several instances may remove
-- at a time. The planner knows the limit, and rows come by their ctid: for a number that it does not know it would read
-- the whole table at each step. A step that began at the first event would pass all that is removed until vacuum.
with removed as (
  delete from hooks.destination_deliveries
   where ctid = any (array(
         select o.ctid
           from hooks.destination_deliveries o
          where o.destination = (select name from hooks.destinations where name = :name and disabled_by = 'removal')
            and o.event_id >= :from
          order by o.event_id
          limit 2000
            for update skip locked))
  returning event_id
)
select max(event_id) + 1 as next_from from removed;

-- name: endRemoval
-- Removes a destination that is being removed once its deliveries are gone, which frees its name.
delete from hooks.destinations d
 where d.name = :name
   and d.disabled_by = 'removal'
   and not exists (select from hooks.destination_deliveries where destination = d.name);

-- name: lockDestination
-- Holds a destination until the transaction ends. Empty when there is none of this name.
select position, disabled_at is null as enabled from hooks.destinations where name = :name for no key update;

-- name: lockDestinations
-- The same for all of them, in one order.
select name from hooks.destinations where disabled_by is distinct from 'removal' order by name for no key update;

-- name: retryDeliveries
-- One step through the deliveries of a destination, from event :from on. Makes due now those that wait for another try,
-- and with :dead the dead ones, from the first try on. Those that are being sent stay as they are. Gives the event to
-- go on from; null at the end. The rows are found as in removeDeliveries.
with owner as materialized (
  select name from hooks.destinations
   where name = :name and kind = 'standing' and disabled_by is distinct from 'removal'
     for no key update
), step as materialized (
  select ctid as place, event_id
    from hooks.destination_deliveries
   where destination = (select name from owner)
     and event_id >= :from
   order by event_id
   limit 2000
), retried as (
  update hooks.destination_deliveries d
     set tries = case when d.next_at is null then 0 else d.tries end, next_at = now(), claimed_until = null
   where d.ctid = any (array(select place from step))
     and (d.next_at > now() or :dead and d.next_at is null)
     and (d.claimed_until is null or d.claimed_until <= now())
  returning d.event_id
)
select (select count(*) from retried)::integer as retried,
       (select max(event_id) + 1 from step having count(*) = 2000) as next_from;

-- name: retryChosen
-- The same for the deliveries of chosen events, also for dead ones.
with owner as materialized (
  select name from hooks.destinations
   where name = :name and kind = 'standing' and disabled_by is distinct from 'removal'
     for no key update
), retried as (
  update hooks.destination_deliveries d
     set tries = case when d.next_at is null then 0 else d.tries end, next_at = now(), claimed_until = null
    from jsonb_array_elements_text(:events::jsonb) as chosen(id)
   where d.destination = (select name from owner)
     and d.event_id = chosen.id::bigint
     and (d.next_at > now() or d.next_at is null)
     and (d.claimed_until is null or d.claimed_until <= now())
  returning d.event_id
)
select count(*)::integer as retried from retried;

-- name: listDeliveries
-- The deliveries of a destination after an event, in the order of events: those that wait, or with :dead those given
-- up. Each has an index of its own.
select o.event_id, o.state, e.provider, e.event_type, e.received_at, o.tries, o.next_at, o.last_at, o.last_status,
       o.last_detail
  from ((select *, 'waiting' as state
           from hooks.destination_deliveries
          where not :dead::boolean and destination = :name and next_at is not null and event_id > :after
          order by event_id limit :limit)
        union all
        (select *, 'dead' as state
           from hooks.destination_deliveries
          where :dead::boolean and destination = :name and next_at is null and event_id > :after
          order by event_id limit :limit)) o
  join hooks.events e on e.id = o.event_id
 order by o.event_id
 limit :limit;

-- name: findWork
-- The enabled destinations that have something to do: `behind` where events came after the position, `due` where a
-- delivery may be sent.
select name, position, behind, due, reads_payloads
  from (select d.name, d.position, d.members <> '[]' as reads_payloads,
               d.kind = 'standing' and d.position < (select max(id) from hooks.events) as behind,
               exists (select from hooks.destination_deliveries o
                        where o.destination = d.name
                          and o.next_at <= now()
                          and (o.claimed_until is null or o.claimed_until <= now())) as due
          from hooks.destinations d
         where d.disabled_at is null) w
 where behind or due
 order by name;

-- name: lockToPlan
-- Holds those of :names that are enabled until the transaction ends. Deliveries are planned for them.
select name, position
  from hooks.destinations
 where :names::jsonb ? name
   and disabled_at is null
 order by name
   for no key update;

-- name: planDeliveries
-- Looks at the next :rows events of each destination, up to :last: a delivery for each one that is wanted, and the
-- position moves behind them. Its caller holds the destinations. Ids become visible in order, so no event is skipped.
with step as materialized (
  select d.name, e.id, hooks.is_wanted(d, e.provider, e.event_type, e.body) as wanted
    from hooks.destinations d
   cross join lateral (
         select id, provider, event_type, coalesce(reading, payload) as body
           from hooks.events
          where id > d.position and id <= :last
          order by id
          limit :rows
         ) e
   where :names::jsonb ? d.name
), planned as (
  insert into hooks.destination_deliveries (destination, event_id, next_at)
  select name, id, now() from step where wanted
  -- A delivery that exists already, because the position was moved back, stays as it is.
  on conflict do nothing
), moved as (
  update hooks.destinations d
     set position = s.through
    from (select name, max(id) as through from step group by name) s
   where d.name = s.name
)
select name, count(*) filter (where wanted)::integer as planned from step group by name order by name;

-- name: claimDeliveries
-- Due deliveries with their events, which nobody else sends for :seconds: at most :limit, and until their payloads have
-- :bytes bytes.
select c.tries, c.claimed_until,
       (c.event).id, (c.event).provider, (c.event).event_type, hooks.trust_mode((c.event).trust) as trust_mode,
       hooks.verified((c.event).trust) as verified, hooks.verify_detail((c.event).trust) as verify_detail, (c.event).external_id,
       (c.event).content_type, (c.event).source_ip, (c.event).method, (c.event).query, (c.event).headers,
       (c.event).payload, (c.event).reading, (c.event).read_as,
       length((c.event).payload) as payload_size, 1 as attempts, (c.event).received_at
  from hooks.claim_deliveries(:name, :limit, :bytes, :seconds) c
 order by (c.event).id
 limit :limit;

-- name: settleDeliveries
-- Records what came of claimed deliveries. A result counts while its claim does; its attempt is shown in any case. The
-- fates: `delivered`, `again` after wait_ms, `dead`, `gone` (dead, and its receiver wants no more), `released` (not sent).
-- With :most dead ones in a row the destination is disabled, and a standing one also with one that is gone. Gives whether
-- it is enabled still; empty when it was removed.
with given as materialized (
  select n, event_id, claimed_until, fate, outcome, status, ms, detail, wait_ms, at
    from jsonb_to_recordset(:results::jsonb)
      as r(n integer, event_id bigint, claimed_until timestamptz, fate text, outcome text, status smallint,
           ms integer, detail text, wait_ms bigint, at timestamptz)
), owner as materialized (
  select name, kind, disabled_at, dead_in_row from hooks.destinations where name = :name for no key update
), noted as (
  select hooks.note_attempts(:results, :kind, :target) as done from owner
), removed as (
  delete from hooks.destination_deliveries d
   using given g, owner o
   where g.fate = 'delivered'
     and d.destination = o.name
     and d.event_id = g.event_id
     and d.claimed_until = g.claimed_until
  returning g.n, g.fate
), kept as (
  update hooks.destination_deliveries d
     set tries = d.tries + case g.fate when 'released' then 0 else 1 end,
         next_at = case g.fate when 'again' then now() + g.wait_ms * interval '1 ms' when 'released' then d.next_at end,
         claimed_until = null,
         last_at = case when g.outcome is null then d.last_at else g.at end,
         last_status = case when g.outcome is null then d.last_status else g.status end,
         last_detail = case when g.outcome is null then d.last_detail else g.detail end
    from given g, owner o
   where g.fate <> 'delivered'
     and d.destination = o.name
     and d.event_id = g.event_id
     and d.claimed_until = g.claimed_until
  returning g.n, g.fate
), settled as (
  select n, fate from removed union all select n, fate from kept
), counted as (
  select count(*) filter (where fate = 'delivered') as delivered,
         count(*) filter (where fate in ('dead', 'gone')) as died,
         count(*) filter (where fate in ('dead', 'gone')
                            and n > coalesce((select max(n) from settled where fate = 'delivered'), -1)) as dead,
         coalesce(bool_or(fate = 'gone'), false) as gone
    from settled
), judged as (
  select c.delivered, c.died, r.dead_in_row,
         o.disabled_at is null and (r.dead_in_row >= :most or c.gone and o.kind = 'standing') as fails
    from counted c
   cross join owner o
   cross join lateral (
     select c.dead + case when c.delivered = 0 then o.dead_in_row else 0 end as dead_in_row
   ) r
), newest as (
  select at, status, detail from given where outcome is not null order by n desc limit 1
), changed as (
  update hooks.destinations d
     set delivered = d.delivered + j.delivered,
         died = d.died + j.died,
         dead_in_row = j.dead_in_row,
         disabled_at = case when j.fails then now() else d.disabled_at end,
         disabled_by = case when j.fails then 'failures' else d.disabled_by end,
         last_at = coalesce(l.at, d.last_at),
         last_status = case when l.at is null then d.last_status else l.status end,
         last_detail = case when l.at is null then d.last_detail else l.detail end,
         mean_ms = coalesce(d.mean_ms + (m.ms - d.mean_ms) / 8, m.ms, d.mean_ms)
    from owner o
   cross join judged j
   cross join (select avg(ms)::double precision as ms from given where status is not null) m
    left join newest l on true
   where d.name = o.name
  returning d.disabled_at is null as enabled, o.disabled_at is null as was_enabled
), notified as (
  select pg_notify('hooks_config', '') as sent from changed where was_enabled and not enabled
)
select changed.enabled from changed left join noted on true left join notified on true;

-- name: firstOwed
-- The first event that an enabled destination has not received, or not considered; null without a destination.
select min(coalesce((select min(event_id) from hooks.destination_deliveries
                      where destination = d.name and next_at is not null), d.position + 1)) as id
  from hooks.destinations d
 where d.disabled_at is null;

-- name: giveUpEvents
-- Counts what pruneEvents is about to remove as the gap of the destinations that want it and did not get it. Its
-- caller holds the destinations until both are done. Events go in ascending order, so the deliveries of those removed
-- are the first ones of each destination: no index by event is needed. The rows are found as in removeDeliveries; 1,000
-- is more than a batch has. Of a replay job only what it would still send counts: what died has been counted.
with surplus as materialized (
  select id, provider, event_type, coalesce(reading, payload) as body
    from hooks.events
   where id > (select pruned_through from hooks.settings)
     and id < :below
   order by id
   limit :limit
     for update
), owners as materialized (
  select d, (select max(id) from surplus) as through
    from hooks.destinations d
   where d.disabled_by is distinct from 'removal'
), removed as (
  delete from hooks.destination_deliveries
   where ctid = any (array(
         select o.place
           from owners w
          cross join lateral (
                select ctid as place from hooks.destination_deliveries
                 where destination = (w.d).name and event_id <= w.through
                 order by event_id
                 limit 1000
                   for update
                ) o))
  returning destination, event_id, next_at
), given_up as (
  select destination as name, event_id
    from removed r
    join owners w on (w.d).name = r.destination
   where (w.d).kind = 'standing'
      or (w.d).disabled_at is null and r.next_at is not null
   union all
  select (w.d).name, s.id
    from owners w
    join surplus s on s.id > (w.d).position
   where (w.d).kind = 'standing'
     and hooks.is_wanted(w.d, s.provider, s.event_type, s.body)
)
update hooks.destinations d
   set gap = d.gap + g.events, gap_through = greatest(d.gap_through, g.through)
  from (select name, count(*) as events, max(event_id) as through from given_up group by name) g
 where d.name = g.name
returning d.name, g.events::integer as events, g.through;
