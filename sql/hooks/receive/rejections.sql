-- name: saveRejections
-- A batch of rejected deliveries: the newest of them (:rows), and how many there were by provider, status and minute
-- (:sums), of which some had a wrong signature or token. Does nothing when the writer's batch was saved before. All
-- writers lock the counters in one order. Of the rows that are there, the newest :keep stay. Those of the provider
-- :unknown have a bound of their own, :keep_unknown: deliveries to unknown paths evict no other row.
with fresh as (
  insert into hooks.rejection_writers (writer, batch, at)
  values (:writer, :batch, :now)
  on conflict (writer) do update set batch = excluded.batch, at = excluded.at
   where hooks.rejection_writers.batch < excluded.batch
  returning writer
), sums as (
  select *
    from jsonb_to_recordset(:sums::jsonb)
         as s(provider text, status smallint, minute timestamptz, total bigint, wrong integer, last_at timestamptz)
   where exists (select from fresh)
), kept as (
  insert into hooks.rejections (at, provider, status, source, reason)
  select r.at, r.provider, r.status, r.source, r.reason
    from jsonb_to_recordset(:rows::jsonb) as r(at timestamptz, provider text, status smallint, source text, reason text)
   where exists (select from fresh)
), pruned as (
  delete from hooks.rejections
   where id <= coalesce((select id from hooks.rejections where provider <> :unknown
                          order by id desc offset :keep limit 1), 0)
     and provider <> :unknown
     and exists (select from fresh)
), pruned_unknown as (
  delete from hooks.rejections
   where id <= coalesce((select id from hooks.rejections where provider = :unknown
                          order by id desc offset :keep_unknown limit 1), 0)
     and provider = :unknown
     and exists (select from fresh)
), counted as (
  insert into hooks.rejection_minutes (provider, minute, rejected, wrong_secret)
  select provider, minute, sum(total), sum(wrong)
    from sums
   group by provider, minute
   order by provider, minute
  on conflict (provider, minute) do update
     set rejected = hooks.rejection_minutes.rejected + excluded.rejected,
         wrong_secret = hooks.rejection_minutes.wrong_secret + excluded.wrong_secret
)
insert into hooks.rejection_totals (provider, status, total, last_at)
select provider, status, sum(total), max(last_at)
  from sums
 group by provider, status
 order by provider, status
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

-- name: groupRejections
-- Rejected deliveries since a time that are alike, of one provider or of all (null); the kind that came last first. Only
-- the newest :among rows are read. A duration in a reason makes no kind of its own. Unknown paths, which anybody can
-- fill, have a place each up to :kinds, as all others together: they hide no other kind.
with recent as (
  select at, provider, status, source, regexp_replace(reason, '\d+ s', '… s') as reason
    from (select *
            from hooks.rejections
           where :provider::text is null or provider = :provider
           order by id desc
           limit :among) r
   where at >= :since
), alike as (
  select provider, status, reason, count(*)::integer as count, count(distinct source)::integer as sources,
         min(at) as first_at, max(at) as last_at
    from recent
   group by provider, status, reason
), placed as (
  select *, row_number() over (partition by provider = :unknown order by last_at desc, reason) as place
    from alike
)
select provider, status, reason, count, sources, first_at, last_at
  from placed
 where place <= :kinds
 order by last_at desc, provider, reason;

-- name: listRejectionCounts
-- Rejected deliveries of each provider since the beginning, with the newest reason that is still kept.
select t.provider, sum(t.total)::bigint as total,
       (select r.reason from hooks.rejections r where r.provider = t.provider order by r.id desc limit 1) as last_reason
  from hooks.rejection_totals t
 group by t.provider
 order by t.provider;

-- name: pruneRejectionMinutes
delete from hooks.rejection_minutes
 where minute < :before;
