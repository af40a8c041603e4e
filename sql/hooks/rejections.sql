-- name: saveRejections
-- A batch of rejected deliveries: the newest of them (:rows), how many there were by provider and status (:counts),
-- and how many by provider and minute had a wrong signature or token (:minutes). Does nothing when the writer's
-- batch was saved before. All writers lock the counters in one order.
with fresh as (
  insert into hooks.rejection_writers (writer, batch, at)
  values (:writer, :batch, :now)
  on conflict (writer) do update set batch = excluded.batch, at = excluded.at
   where hooks.rejection_writers.batch < excluded.batch
  returning writer
), kept as (
  insert into hooks.rejections (at, provider, status, source, reason)
  select r.at, r.provider, r.status, r.source, r.reason
    from jsonb_to_recordset(:rows::jsonb) as r(at timestamptz, provider text, status smallint, source text, reason text)
   where exists (select from fresh)
), counted as (
  insert into hooks.refusals (provider, minute, refused)
  select m.provider, m.minute, m.rejected
    from jsonb_to_recordset(:minutes::jsonb) as m(provider text, minute timestamptz, rejected integer)
   where exists (select from fresh)
   order by m.provider, m.minute
  on conflict (provider, minute) do update set refused = hooks.refusals.refused + excluded.refused
)
insert into hooks.rejection_totals (provider, status, total, last_at)
select c.provider, c.status, c.total, c.last_at
  from jsonb_to_recordset(:counts::jsonb) as c(provider text, status smallint, total bigint, last_at timestamptz)
 where exists (select from fresh)
 order by c.provider, c.status
on conflict (provider, status) do update
   set total = hooks.rejection_totals.total + excluded.total,
       last_at = greatest(hooks.rejection_totals.last_at, excluded.last_at);

-- name: forgetRejectionWriters
-- None of their batches is in flight any more.
delete from hooks.rejection_writers
 where at < :before;

-- name: listRejections
-- Newest first below an id, of one provider or of all (null).
select id, at, provider, status, source, reason
  from hooks.rejections
 where id < :below
   and (:provider::text is null or provider = :provider)
 order by id desc
 limit :limit;

-- name: listRejectionCounts
-- Rejected deliveries of each provider since the beginning, with the newest reason that is still kept.
select t.provider, sum(t.total)::bigint as total, max(t.last_at) as last_at,
       (select r.reason from hooks.rejections r where r.provider = t.provider order by r.id desc limit 1) as last_reason
  from hooks.rejection_totals t
 group by t.provider
 order by t.provider;

-- name: pruneRejections
-- Keeps the newest.
delete from hooks.rejections
 where id <= coalesce((select id from hooks.rejections order by id desc offset :keep limit 1), 0);

-- name: pruneRejectionMinutes
delete from hooks.refusals
 where minute < :before;
