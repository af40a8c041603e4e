-- name: claimRecovery
-- Takes a source for :lease_ms, if it is due; gives the problem of the look before. Empty if it is not due, also
-- because another instance has it.
insert into hooks.recoveries (source, next_at)
select :source, clock_timestamp() + :lease_ms::bigint * interval '1 ms'
 -- A conflict locks the row, which is a write: this is asked every second.
 where not exists (select from hooks.recoveries where source = :source and next_at > clock_timestamp())
on conflict (source) do update
   set next_at = excluded.next_at
 where hooks.recoveries.next_at <= clock_timestamp()
returning problem;

-- name: releaseRecovery
-- Another instance may look at once.
update hooks.recoveries set next_at = clock_timestamp() where source = :source;

-- name: saveRecovery
-- What a look has found. Null :counts keep the former ones, and a null :wait_ms keeps the time of the next look.
insert into hooks.recoveries (source, next_at, ended_at, problem, counts)
values (:source, clock_timestamp() + coalesce(:wait_ms::bigint, 0) * interval '1 ms', clock_timestamp(), :problem,
        coalesce(:counts::jsonb, '[]'))
on conflict (source) do update
   set next_at = case when :wait_ms::bigint is null then hooks.recoveries.next_at else excluded.next_at end,
       ended_at = excluded.ended_at,
       problem = excluded.problem,
       counts = coalesce(:counts::jsonb, hooks.recoveries.counts);

-- name: listRecoveries
select source, ended_at, problem, counts from hooks.recoveries where ended_at is not null order by source;

-- name: listMissing
-- The ids, of a JSON list, that no event of a provider has.
select id
  from jsonb_array_elements_text(:ids::jsonb) as id
 where not exists (select from hooks.find_delivery(:provider, id));

-- name: pruneRecoveries
delete from hooks.recoveries where greatest(next_at, ended_at) < :before;
