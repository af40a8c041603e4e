-- name: listLinks
-- A page of a list (links.slugs_in_list). Each link is looked up by its slug (`offset 0`): a deep page costs what the first
-- one costs.
select l.*
  from (select slug
          from links.slugs_in_list(:list, :user, :tag, :after, '{', :limit)
         order by slug collate "C"
         limit :limit) page
 cross join lateral (select * from links.shown_links where slug = page.slug offset 0) l
 order by l.slug
 limit :limit;

-- name: findWindowEnd
-- The last of the next :rows slugs of a list. Empty when fewer are left.
select slug
  from links.slugs_in_list(:list, :user, :tag, :after, :until, :rows)
 order by slug collate "C"
offset :rows::bigint - 1
 limit 1;

-- name: searchLinks
-- The links of a list from slug :after (exclusive) to :until (inclusive) that match the filter, with their clicks since
-- day :since. Each pattern of the JSON array :patterns must match slug, title, url or tags. Slugs that begin with
-- :but_prefix are left out. '' and [] filter nothing. Links are looked up one by one (`offset 0`), so that no plan reads
-- links that the user may not see.
with found as (
  select page.slug
    from links.slugs_in_list(:list, :user, :tag, :after, :until, null) page
   cross join lateral (select slug, title, url, visibility from links.links where slug = page.slug offset 0) l
   where (:visibility = '' or l.visibility = :visibility)
     and (:but_prefix = '' or not starts_with(l.slug, :but_prefix))
     and (:tag = '' or exists (select from links.link_tags t where t.slug = l.slug and t.tag = :tag))
     and (:patterns = '[]'::jsonb
          or lower(concat_ws(' ', l.slug, l.title, l.url,
                             (select string_agg(t.tag, ' ') from links.link_tags t where t.slug = l.slug)))
             like all (array(select lower(pattern) from jsonb_array_elements_text(:patterns) as pattern)))
   order by page.slug collate "C"
   limit :limit
)
select l.id, l.slug, l.url, l.title, l.tags, l.visibility,
       coalesce(own.is_primary, false) as is_primary, own.slug is not null as is_owner,
       given.slug is not null as is_recipient,
       coalesce((select sum(c.clicks)
                   from links.clicks c
                  where c.link_id = l.id
                    and c.day >= :since::text::date
                    and c.kind <> 'preview'), 0)::bigint as clicks
  from found
 cross join lateral (select * from links.shown_links where slug = found.slug offset 0) l
  left join lateral (
         select slug, is_primary from links.link_owners where user_id = :user and slug = found.slug offset 0) own on true
  left join lateral (
         select slug from links.link_shares where user_id = :user and slug = found.slug offset 0) given on true
 order by l.slug
 limit :limit;

-- name: suggestLinks
-- Links of a list (`visible` or `every`) whose slug is in the JSON array :near, then those whose slug begins with :prefix.
-- Links that the user (null: nobody) may not see take neither a place among the 50 nor time.
with near as (
  select l.slug, 1 as rank
    from jsonb_array_elements_text(:near::jsonb) as wanted(slug)
    join links.links l on l.slug = wanted.slug
   where l.visibility = 'public'
      or :list = 'every'
      or exists (select from links.link_owners o where o.user_id = :user::uuid and o.slug = l.slug)
      or exists (select from links.link_shares s where s.user_id = :user::uuid and s.slug = l.slug)
  union all
  select slug, 2
    from links.slugs_in_list(:list, :user, '', :prefix, :prefix || '{', 50)
)
select l.slug, l.title
  from (select slug, min(rank) as rank from near group by slug) found
  join links.links l on l.slug = found.slug
 order by found.rank, length(l.slug), l.slug
 limit :limit;
