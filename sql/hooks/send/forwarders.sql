-- name: attachForwarder
-- Records a new connection of a forwarder. A new name starts at position :start, or at the newest event when that is
-- null; a known one keeps its position. The notification lets other instances end older connections of the name.
with attached as (
  insert into hooks.forwarders (name, position, updated_at)
  select :name, coalesce(:start::bigint, greatest((select max(id) from hooks.events), s.pruned_through)), :now
    from hooks.settings s
  on conflict (name) do update
     set connection = hooks.forwarders.connection + 1, updated_at = excluded.updated_at
  returning position, connection, again
), notified as (
  select pg_notify('hooks_forwarders', '') as sent from attached
)
select a.position, a.connection, to_jsonb(a.again) as again from attached a left join notified on true;

-- name: moveForwarder
-- Records the attempts of a forwarder, and that it is done with the events up to :position; with null it stays where it
-- is. :repeated is an event that it need not get once more. `is_newest`: false when a newer connection has its name. Only
-- the newest one moves the position.
with moved as (
  update hooks.forwarders
     set position = greatest(position, :position), again = array_remove(again, :repeated), updated_at = :now
   where name = :name
     and connection = :connection
  returning name
)
select moved.name is not null as is_newest
  from hooks.note_attempts(:attempts, 'forward', :target) as noted
  left join moved on true;

-- name: listForwarders
-- The forwarders by name, with how many events are above their position, counted up to :count_up_to.
select f.name, f.position, f.updated_at,
       (select count(*)
          from (select from hooks.events where id > greatest(f.position, s.pruned_through) limit :count_up_to) above
       )::int as waiting
  from hooks.forwarders f
 cross join hooks.settings s
 order by f.name
 limit :limit;

-- name: removeForwarder
-- Removes a forwarder with its position. Empty when there is none of this name.
delete from hooks.forwarders where name = :name returning name;

-- name: listConnections
-- The newest connections of the forwarders that the JSON array :names lists, and the events that they get once more.
select name, connection, to_jsonb(again) as again
  from hooks.forwarders
 where name in (select jsonb_array_elements_text(:names::jsonb))
 order by name
 limit :limit;

-- name: sendAgain
-- A forwarder gets :event once more, whatever its position. Empty when there is none of this name, or 100 events wait.
with asked as (
  update hooks.forwarders
     set again = array_append(array_remove(again, :event), :event)
   where name = :name and cardinality(again) < 100
  returning name
), notified as (
  select pg_notify('hooks_forwarders', '') as sent from asked
)
select asked.name from asked left join notified on true;

-- name: listReceivers
-- The forwarders that were heard of last, and whether each is still to get :event once more.
select name, coalesce(:event = any(again), false) as waits
  from hooks.forwarders
 order by updated_at desc, name
 limit :limit;
