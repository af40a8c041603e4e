-- name: findTotals
-- All visits of a link, its last one, and how many of the kept days were of which kind. Empty when no link has this id.
select l.clicks as total, l.clicked_at as last_visit, k.human, k.bot, k.preview
  from links.links l
 cross join lateral (
        select coalesce(sum(clicks) filter (where kind = 'human'), 0)::bigint as human,
               coalesce(sum(clicks) filter (where kind = 'bot'), 0)::bigint as bot,
               coalesce(sum(clicks) filter (where kind = 'preview'), 0)::bigint as preview
          from links.clicks
         where link_id = l.id) k
 where l.id = :link;

-- name: listVisitDays
-- The days (UTC) on which a link was visited, oldest first. Previews are no visits.
select to_char(day, 'YYYY-MM-DD') as day, sum(clicks)::bigint as visits
  from links.clicks
 where link_id = :link
   and kind <> 'preview'
 group by links.clicks.day
 order by links.clicks.day
 limit :limit;

-- name: listSources
-- Visits of a link from the day :since on: by the host of the referrer where :by is `referrers`, else by the kind of client.
-- The :most largest numbers, then the rest as `other`.
with summed as (
  select given.name, sum(given.number::bigint) as visits
    from links.click_sources s
   cross join lateral jsonb_each_text(case :by::text when 'referrers' then s.referrers else s.clients end)
           as given(name, number)
   where s.link_id = :link
     and s.day >= :since::text::date
   group by given.name
), ranked as (
  select name, visits, row_number() over (order by name = 'other', visits desc, name) as place
    from summed
), named as (
  select case when place <= :most then name else 'other' end as name, visits
    from ranked
)
select name, sum(visits)::bigint as visits
  from named
 group by name
 order by name = 'other', sum(visits) desc, name
 limit :limit;

-- name: listClicks
-- The clicks on a link on each of :days days (UTC) from :since (such as 2026-01-31) on, in all and by kind.
select to_char(d.day, 'YYYY-MM-DD') as day,
       coalesce(sum(c.clicks), 0)::bigint as total,
       coalesce(sum(c.clicks) filter (where c.kind = 'human'), 0)::bigint as human,
       coalesce(sum(c.clicks) filter (where c.kind = 'bot'), 0)::bigint as bot,
       coalesce(sum(c.clicks) filter (where c.kind = 'preview'), 0)::bigint as preview
  from (select :since::text::date + n as day from generate_series(0, :days::bigint::integer - 1) n) d
  left join links.clicks c on c.link_id = :link and c.day = d.day
 group by d.day
 order by d.day
 limit :days;

-- name: listDayVisits
-- The visits of each of the :links on the days (UTC) from :since on. Previews are no visits.
select link_id as link, to_char(day, 'YYYY-MM-DD') as day, sum(clicks)::bigint as visits
  from links.clicks
 where link_id = any(:links::uuid[])
   and day >= :since::text::date
   and kind <> 'preview'
 group by link_id, links.clicks.day
 limit :limit;

-- name: listMostUsed
-- The links with the most clicks: those that the :owners, a user and groups, own or co-own, or all where
-- :owners is null.
with page as (
  (select slug
     from links.links
    where :owners::uuid[] is null
      and visibility = 'public'
      and - clicks < 0
    order by - clicks, slug
    limit :limit)
  union all
  (select slug
     from links.links
    where :owners::uuid[] is null
      and visibility <> 'public'
      and - clicks < 0
    order by - clicks, slug
    limit :limit)
  union all
  (select l.slug
     from (select distinct slug from links.link_owners where user_id = any(:owners::uuid[])) o
    cross join lateral (select slug, clicks from links.links where slug = o.slug offset 0) l
    where l.clicks > 0
    order by - l.clicks, l.slug
    limit :limit)
)
select l.id, l.slug, l.title, l.url, l.expires_at, l.max_visits, l.archived, l.clicks, l.clicked_at,
       coalesce(l.clicked_at, l.created_at) as used_at
  from page
 cross join lateral (select * from links.links where slug = page.slug offset 0) l
 order by l.clicks desc, l.slug
 limit :limit;

-- name: listUnused
-- Links that were last visited, or created and never visited, before :before: those that the :owners, a user and
-- groups, own or co-own, or all where :owners is null. The one unused for longest comes first. They begin after the place
-- of :used_at and the slug :after.
with page as (
  (select slug
     from links.links
    where :owners::uuid[] is null
      and coalesce(clicked_at, created_at) < :before
      and (coalesce(clicked_at, created_at), slug) > (:used_at, :after)
    order by coalesce(clicked_at, created_at), slug
    limit :limit)
  union all
  (select l.slug
     from (select distinct slug from links.link_owners where user_id = any(:owners::uuid[])) o
    cross join lateral (
           select slug, coalesce(clicked_at, created_at) as used_at from links.links where slug = o.slug offset 0) l
    where l.used_at < :before
      and (l.used_at, l.slug) > (:used_at, :after)
    order by l.used_at, l.slug
    limit :limit)
)
select l.id, l.slug, l.title, l.url, l.expires_at, l.max_visits, l.archived, l.clicks, l.clicked_at,
       coalesce(l.clicked_at, l.created_at) as used_at
  from page
 cross join lateral (select * from links.links where slug = page.slug offset 0) l
 order by used_at, l.slug
 limit :limit;
