-- name: tryPruningLock
-- Only one instance prunes at a time.
select pg_try_advisory_xact_lock(7203006) as taken;

-- name: pruneClicks
-- Removes at most :limit rows of days before :before (such as 2026-01-31). The sum in the link's row stays.
with old as (
  select link_id, day, kind
    from links.clicks
   where day < :before::text::date
   order by day
   limit :limit
), removed as (
  delete from links.clicks
   where (link_id, day, kind) in (select link_id, day, kind from old)
  returning link_id
)
select count(*)::integer as removed from removed;

-- name: pruneSources
-- Removes at most :limit rows of days before :before (such as 2026-01-31).
with old as (
  select link_id, day
    from links.click_sources
   where day < :before::text::date
   order by day
   limit :limit
), removed as (
  delete from links.click_sources
   where (link_id, day) in (select link_id, day from old)
  returning link_id
)
select count(*)::integer as removed from removed;

-- name: mergeSources
-- Merges at most :limit rows of days before :before into the row of the first day of their month. Each call takes one day of
-- a link and month. A month keeps :hosts hosts. Links are locked first, so that nobody deletes them meanwhile.
with due as (
  select link_id, day
    from links.click_sources
   where day < :before::text::date
     and extract(day from day) <> 1
   order by day
   limit :limit
), old as (
  select link_id, max(day) as day
    from due
   group by link_id, date_trunc('month', day)
), known as materialized (
  select l.id
    from (select distinct link_id from old order by link_id) o
   cross join lateral (select id from links.links where id = o.link_id for key share) l
), removed as (
  delete from links.click_sources s
   using old
    join known k on k.id = old.link_id
   where s.link_id = old.link_id
     and s.day = old.day
  returning s.link_id, s.day, s.referrers, s.clients
), merged as (
  insert into links.click_sources (link_id, day, referrers, clients)
  select link_id, date_trunc('month', day)::date, referrers, clients
    from removed
  on conflict (link_id, day) do update
     set referrers = links.add_counts(links.click_sources.referrers, excluded.referrers, :hosts),
         clients = links.add_counts(links.click_sources.clients, excluded.clients, :hosts)
  returning link_id
)
select count(*)::integer as removed from merged;

-- name: pruneDeleted
-- Removes at most :limit links that were deleted before :before. They can't be restored any more.
with old as (
  select deletion
    from links.deleted_links
   where deleted_at < :before
   order by deleted_at
   limit :limit
), removed as (
  delete from links.deleted_links
   where deletion in (select deletion from old)
  returning deletion
)
select count(*)::integer as removed from removed;

-- name: pruneChanges
-- Looks at the next :links links after id :after, and removes at most :limit of their changes from before :before. The
-- newest :keep changes of each link stay. Gives the last of these links; null after the last link.
with looked as (
  select id
    from links.links
   where id > :after
   order by id
   limit :links
), old as (
  select c.id
    from looked l
   cross join lateral (
          select id, at from links.changes where link_id = l.id order by id desc offset :keep) c
   where c.at < :before
   limit :limit
), removed as (
  delete from links.changes
   where id in (select id from old)
  returning id
)
select (select count(*) from removed)::integer as removed,
       (select id from looked order by id desc limit 1) as last;
