-- name: findTargets
-- What visits need of the links that the names in the JSON array :names stand for: the one that has the name, and at most
-- :namesakes with a name that differs in dashes only. Visits end at `ends_at`, in milliseconds since 1970, and after
-- `max_visits` of them; null: never. `clicks` has the batches of :writer up to `written`.
select asked.name as asked, n.name, l.id, l.slug, l.url, l.visibility, l.append_path,
       case when l.archived then '-infinity' else extract(epoch from l.expires_at)::float8 * 1000 end as ends_at,
       l.max_visits, l.clicks, coalesce((select batch from links.click_writers where writer = :writer), 0) as written
  from jsonb_array_elements_text(:names::jsonb) as asked(name)
 cross join lateral (
        select name, link_id from links.names where name = asked.name
        union
        (select name, link_id
           from links.names
          where replace(name, '-', '') = replace(asked.name, '-', '')
          limit :namesakes)) n
 cross join lateral (select * from links.links where id = n.link_id offset 0) l
 limit :limit;

-- name: listMostUsed
-- The most used links, behind :rank and :slug: `rank` is lowest for the most clicks. Public links and others have an index
-- each. A snapshot keeps no secure link, none that has ended, and none with a limit of visits.
select id, slug, url, visibility, append_path, extract(epoch from expires_at)::float8 * 1000 as ends_at, rank,
       visibility <> 'secure' and not archived and max_visits is null as is_kept
  from ((select *, - clicks as rank
           from links.links
          where visibility = 'public' and (- clicks, slug) > (:rank::int8, :slug)
          order by - clicks, slug
          limit :limit)
        union all
        (select *, - clicks as rank
           from links.links
          where visibility <> 'public' and (- clicks, slug) > (:rank::int8, :slug)
          order by - clicks, slug
          limit :limit)) l
 order by rank, slug
 limit :limit;

-- name: mayVisit
-- Whether one of the :users, a user and groups, is an owner or a recipient of the link.
select exists (
         select from links.link_owners o join links.links l on l.slug = o.slug where l.id = :link and o.user_id = any(:users::uuid[]))
       or exists (
         select from links.link_shares s join links.links l on l.slug = s.slug where l.id = :link and s.user_id = any(:users::uuid[]))
       as may;

-- name: lockMovesShared
-- Until the transaction ends, no link is deleted or restored: each is in one of the two tables.
select pg_advisory_xact_lock_shared(7203009);

-- name: saveClicks
-- Adds the JSON array :clicks, unless batch :batch of this writer is stored already. Links are locked in the order of their
-- ids, so that writers don't deadlock. A deleted link that can be restored keeps its clicks, too; others are dropped.
-- Previews don't count in a link's sum. A link whose sum reaches `max_visits` is used up: all instances get a
-- notification. `last` is the time of a row's last visit. Links are looked up by id, one by one and then by an array: a
-- join would read all links for a single click.
with fresh as (
  insert into links.click_writers (writer, batch, at)
  values (:writer, :batch, :at)
  on conflict (writer) do update set batch = excluded.batch, at = excluded.at
   where links.click_writers.batch < excluded.batch
  returning writer
), counted as (
  select c.link_id, c.day, c.kind, c.clicks, c.last
    from jsonb_to_recordset(:clicks::jsonb) as c(link_id uuid, day date, kind text, clicks bigint, last timestamptz)
), known as materialized (
  select l.id
    from (select distinct link_id from counted order by link_id) c
   cross join lateral (select id from links.links where id = c.link_id for no key update) l
), summed as (
  update links.links l
     set clicks = l.clicks + c.clicks, clicked_at = greatest(l.clicked_at, c.last)
    from (select link_id, sum(clicks)::bigint as clicks, max(last) as last
            from counted
           where kind <> 'preview'
           group by link_id) c
   where l.id = any(array(select id from known))
     and l.id = c.link_id
     and exists (select from fresh)
  returning l.slug,
            case
              when l.clicks >= l.max_visits and l.clicks - c.clicks < l.max_visits
              then (select count(pg_notify('links_changed', n.name)) from links.names n where n.link_id = l.id)
            end as notices,
            links.clicks_keys(l.clicks - c.clicks, l.clicks) as keys
), keyed as (
  update links.link_texts t
     set keys = t.keys || s.keys || case when s.notices is null then '{}' else array['used_up'] end
    from summed s
   where t.slug = any(array(select slug from summed where notices is not null or keys <> '{}'))
     and t.slug = s.slug
), deleted as materialized (
  select d.deletion, d.id
    from (select distinct link_id from counted order by link_id) c
   cross join lateral (select deletion, id from links.deleted_links where id = c.link_id for no key update) d
), kept as (
  update links.deleted_links d
     set clicks = d.clicks || c.rows,
         link = d.link || jsonb_build_object(
           'clicks', (d.link ->> 'clicks')::bigint + c.visits,
           'clicked_at', greatest((d.link ->> 'clicked_at')::timestamptz, c.last))
    from (select link_id, jsonb_agg(jsonb_build_object('link_id', link_id, 'day', day, 'kind', kind, 'clicks', clicks)) as rows,
                 coalesce(sum(clicks) filter (where kind <> 'preview'), 0)::bigint as visits,
                 max(last) filter (where kind <> 'preview') as last
            from counted
           group by link_id) c
   where d.deletion = any(array(select deletion from deleted))
     and d.id = c.link_id
     and exists (select from fresh)
)
insert into links.clicks (link_id, day, kind, clicks)
select c.link_id, c.day, c.kind, c.clicks
  from counted c
  join known k on k.id = c.link_id
 where exists (select from fresh)
 order by c.link_id, c.day, c.kind
on conflict (link_id, day, kind) do update set clicks = links.clicks.clicks + excluded.clicks;

-- name: saveSources
-- Adds the JSON array :sources of links and days, unless batch :batch of this writer is stored already. Links are locked as
-- in saveClicks; what belongs to links that no longer exist is dropped. A day of a link keeps the first :hosts hosts.
with fresh as (
  insert into links.click_writers (writer, batch, at)
  values (:writer, :batch, :at)
  on conflict (writer) do update set batch = excluded.batch, at = excluded.at
   where links.click_writers.batch < excluded.batch
  returning writer
), counted as (
  select s.link_id, s.day, s.referrers, s.clients
    from jsonb_to_recordset(:sources::jsonb) as s(link_id uuid, day date, referrers jsonb, clients jsonb)
), known as materialized (
  select l.id
    from (select distinct link_id from counted order by link_id) c
   cross join lateral (select id from links.links where id = c.link_id for key share) l
)
insert into links.click_sources (link_id, day, referrers, clients)
select c.link_id, c.day, links.add_counts('{}', c.referrers, :hosts), c.clients
  from counted c
  join known k on k.id = c.link_id
 where exists (select from fresh)
 order by c.link_id, c.day
on conflict (link_id, day) do update
   set referrers = links.add_counts(links.click_sources.referrers, excluded.referrers, :hosts),
       clients = links.add_counts(links.click_sources.clients, excluded.clients, :hosts);

-- name: forgetClickWriters
-- Writers that have been silent since :before have no batch left to send.
delete from links.click_writers
 where at < :before;
