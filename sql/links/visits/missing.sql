-- name: saveMissing
-- Adds the visits of the JSON array :missing (`slug`, `visits`) to a day (such as 2026-01-31).
insert into links.missing_slugs as m (day, slug, visits)
select :day::text::date, slug, visits
  from jsonb_to_recordset(:missing::jsonb) as g(slug text, visits bigint)
 order by slug
on conflict (day, slug) do update set visits = m.visits + excluded.visits;

-- name: trimMissing
-- Keeps the :keep slugs of a day that were asked for most, and no day before :before.
delete from links.missing_slugs
 where day < :before::text::date
    or (day = :day::text::date
        and slug in (
            select slug from links.missing_slugs where day = :day::text::date order by visits desc, slug offset :keep));

-- name: listMissingSlugs
-- The slugs that were asked for most since the day :since and that no link has.
select m.slug, sum(m.visits)::bigint as visits, to_char(max(m.day), 'YYYY-MM-DD') as last_day
  from links.missing_slugs m
 where m.day >= :since::text::date
   and not exists (select from links.names n where n.name = m.slug)
 group by m.slug
 order by visits desc, m.slug
 limit :limit;
