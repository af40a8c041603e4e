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

-- name: countLinks
-- The number of links of a list, counted up to :max.
select count(*)::bigint as links
  from (select from links.slugs_in_list(:list, :user, :tag, '', '{', :max) limit :max) counted;

-- name: findWindowEnd
-- The last of the next :rows links of a list. Empty when fewer are left. :sort is '' for the order of slugs, else as in
-- links.slugs_in_order.
select place, slug
  from links.sorted_slugs(:list, :user, :tag, :sort, :place, :after, :until, :rows, :most_own)
 order by place, slug collate "C"
offset :rows::bigint - 1
 limit 1;

-- name: searchLinks
-- Reads the next :rows links of a list after place :place and slug :after, up to slug :until in the order of slugs, and
-- gives those that match the filter. Each pattern of the JSON array :patterns must match slug, title, url, description,
-- tags or owners, each of :owners an owner's address or name, and each of :tags must be a tag. A pattern without an @
-- is compared with the part of an address before its @ only: otherwise the name of a company would find every link.
-- Slugs that begin with :but_prefix are left out. '' and [] filter nothing. Links are looked up one by one (`offset
-- 0`), so that no plan reads links that the user may not see.
with found as (
  select page.place, page.slug
    from (select place, slug
            from links.sorted_slugs(:list, :user, :tag, :sort, :place, :after, :until, :rows, :most_own)
           order by place, slug collate "C"
           limit :rows) page
   cross join lateral (
          select slug, title, url, description, visibility from links.links where slug = page.slug offset 0) l
   where (:visibility = '' or l.visibility = :visibility)
     and (:but_prefix = '' or not starts_with(l.slug, :but_prefix))
     and (:tags = '[]'::jsonb
          or jsonb_array_length(:tags)
             = (select count(*) from links.link_tags t where t.slug = l.slug and :tags ? t.tag))
     and (:owners = '[]'::jsonb
          or lower((select string_agg(concat_ws(' ', u.email, u.display_name), ' ')
                      from links.link_owners o
                      join links.users u on u.id = o.user_id
                     where o.slug = l.slug))
             like all (array(select lower(pattern) from jsonb_array_elements_text(:owners) as pattern)))
     and (:patterns = '[]'::jsonb
          or lower(concat_ws(' ', l.slug, l.title, l.url, l.description,
                             (select string_agg(t.tag, ' ') from links.link_tags t where t.slug = l.slug),
                             (select string_agg(concat_ws(' ', u.display_name, case when :patterns::text like '%@%'
                                                                                 then u.email
                                                                                 else split_part(u.email, '@', 1)
                                                                               end), ' ')
                                from links.link_owners o
                                join links.users u on u.id = o.user_id
                               where o.slug = l.slug)))
             like all (array(select lower(pattern) from jsonb_array_elements_text(:patterns) as pattern)))
   order by page.place, page.slug collate "C"
   limit :limit
)
select found.place, l.id, l.slug, l.url, l.title, left(l.description, 200) as description, l.tags, l.visibility, c.clicks,
       l.expires_at, l.max_visits, l.archived,
       l.created_at, l.updated_at,
       coalesce((select u.email
                   from links.link_owners o
                   join links.users u on u.id = o.user_id
                  where o.slug = found.slug
                    and o.is_primary), '') as owner,
       coalesce(own.is_primary, false) as is_primary, own.slug is not null as is_owner,
       given.slug is not null as is_recipient
  from found
 cross join lateral (select * from links.shown_links where slug = found.slug offset 0) l
 cross join lateral (select clicks from links.links where slug = found.slug offset 0) c
  left join lateral (
         select slug, is_primary from links.link_owners where user_id = :user and slug = found.slug offset 0) own on true
  left join lateral (
         select slug from links.link_shares where user_id = :user and slug = found.slug offset 0) given on true
 order by found.place, l.slug
 limit :limit;

-- name: suggestLinks
-- Links of a list (`visible` or `every`) whose slug is in the JSON array :near, then those whose slug begins with
-- :prefix, then those whose words, each after a space, match all of the JSON array :patterns. Only the first 200 links
-- with a word that begins with :word are read for that, and the first 1,000 of the user's own links. Links that the
-- user (null: nobody) may not see are not read and take no place. Links whose visits have ended at :now are left out.
-- :last sorts after all characters of words.
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
), named as (
  (select w.slug
     from links.link_words w
    where w.is_public
      and w.word >= :word
      and w.word < :word || :last
    order by w.word, w.slug
    limit 200)
  union
  (select w.slug
     from links.link_words w
    where :list = 'every'
      and not w.is_public
      and w.word >= :word
      and w.word < :word || :last
    order by w.word, w.slug
    limit 200)
  union
  (select slug
     from links.slugs_in_list('mine', :user, '', '', '{', 1000)
    limit 1000)
), meant as (
  select slug, rank
    from near
  union all
  select n.slug, 3
    from named n
   where :word <> ''
     and (select string_agg(' ' || w.word, '') from links.link_words w where w.slug = n.slug)
         like all (array(select jsonb_array_elements_text(:patterns::jsonb)))
)
select l.slug, l.title
  from (select slug, min(rank) as rank from meant group by slug) found
 cross join lateral (
        select slug, title, archived, expires_at, clicks, max_visits from links.links where slug = found.slug offset 0) l
 where not l.archived
   and (l.expires_at is null or l.expires_at > :now)
   and (l.max_visits is null or l.clicks < l.max_visits)
 order by found.rank, length(l.slug), l.slug
 limit :limit;
