-- name: listLinks
-- A page of a list (links.slugs_in_list). Each link is looked up by its slug (`offset 0`): a deep page costs what the first
-- one costs.
select l.*
  from (select slug
          from links.slugs_in_list(:list, :users::uuid[], :tag, :after, '{', :limit)
         order by slug collate "C"
         limit :limit) page
 cross join lateral (select * from links.shown_links where slug = page.slug offset 0) l
 order by l.slug
 limit :limit;

-- name: countLinks
-- The number of links of a list, counted up to :max.
select count(*)::bigint as links
  from (select from links.slugs_in_list(:list, :users::uuid[], :tag, '', '{', :max) limit :max) counted;

-- name: searchLinks
-- Links of a list that match, after place :place and slug :after, in the order :sort: `slug`, where slugs that begin with
-- :beginning come first, else as in links.slugs_in_order. :source says where they are looked for: among the next :rows
-- links of the list (`list`) or of all links (`order`), among all links whose slug begins with :beginning (`beginning`), or
-- by the index of texts (`texts`). If :only_beginning, all other slugs are left out.
-- Each pattern of the JSON array :texts must match what links.link_texts has of a link, each of :addresses that or the
-- address of an owner, each of :owners an owner's address or name, and each of :tags must be a tag, each of :keys a key of
-- links.link_texts. :owner must be an owner, and the link must have the :state at :now. '', null and [] filter nothing.
-- The index looks up :indexed, some of :texts. Links are looked up one by one (`offset 0`), so that no plan reads links
-- that the user may not see: `order` reads who may find them, and nothing else. They are looked up in their order, so that
-- no more are read than the page needs.
with asked as (
  select array(select lower(value) from jsonb_array_elements_text(:texts::jsonb)) as texts,
         array(select lower(value) from jsonb_array_elements_text(:indexed::jsonb)) as indexed,
         array(select lower(value) from jsonb_array_elements_text(:owners::jsonb)) as owners,
         array(select lower(value) from jsonb_array_elements_text(:addresses::jsonb)) as addresses,
         array(select jsonb_array_elements_text(:tags::jsonb)) as tags,
         array(select jsonb_array_elements_text(:keys::jsonb)) as keys,
         -- Only the links of these users are compared with :owners and :addresses.
         (select coalesce(array_agg(u.id), '{}')
            from links.users u
           where lower(concat_ws(' ', u.email, u.display_name) collate "default") like lower(:owners::jsonb ->> 0)
          having jsonb_array_length(:owners) > 0) as owner_ids,
         (select coalesce(array_agg(u.id), '{}')
            from links.users u
           where lower(u.email) like lower(:addresses::jsonb ->> 0)
          having jsonb_array_length(:addresses) > 0) as addressed_ids,
         case
           when :list not in ('visible', 'every') then :users::uuid[]
           when :visibility = 'public' then array[links.everybody()]
           when :list = 'every' then null
           when :visibility = '' then links.everybody() || :users::uuid[]
           else :users::uuid[]
         end as finders
), named as (
  select slug
    from links.slugs_in_list(:list, :users::uuid[], '', :start, :beginning || '{', null)
   where :source = 'beginning'
  union all
  select m.slug
    from asked a
   cross join lateral links.links_matching(a.finders, a.tags, a.keys, a.indexed, :owner::uuid, a.owner_ids, a.addressed_ids,
                                           a.addresses[1]) m
   where :source = 'texts'
), candidates as (
  select place, slug
    from links.sorted_slugs(:list, :users::uuid[], :tag, :sort, :beginning, :start, :place, :after, :rows)
   where :source = 'list'
  union all
  select place, slug
    from links.slugs_in_order('every', '{}', :sort, :place, :after, :rows)
   where :source = 'order'
  union all
  select case
           when :sort <> 'slug' then (
             select links.place_in_order(:sort, l.clicks, l.created_at, l.updated_at, l.clicked_at)
               from links.links l
              where l.slug = n.slug)
           when starts_with(n.slug, :beginning) then 0
           else 1
         end, n.slug
    from named n
), found as (
  select c.place, c.slug
    from (select place, slug
            from candidates
           where (place, slug collate "C") > (:place, :after)
           order by place, slug collate "C"
           limit case when :source in ('list', 'order') then :rows::int8 end) c
   cross join asked a
   cross join lateral (
          select text, tags, keys, readers
            from links.link_texts
           where slug = c.slug
             and (:source <> 'order' or readers && a.finders)
          offset 0) t
   where (:visibility = '' and :state = ''
          or exists (
               select from links.links l
                where l.slug = c.slug
                  and (:visibility = '' or l.visibility = :visibility)
                  and (:state = ''
                       or :state = links.state_at(:now, l.archived, l.expires_at, l.max_visits, l.clicks))
               offset 0))
     and (not :only_beginning or starts_with(c.slug, :beginning))
     and t.text like all (a.texts)
     and t.tags @> a.tags
     and t.keys @> a.keys
     and (:owner::uuid is null
          or exists (select from links.link_owners o where o.user_id = :owner::uuid and o.slug = c.slug offset 0))
     and (a.owner_ids is null or t.readers && a.owner_ids)
     and (a.addressed_ids is null or t.text like a.addresses[1] or t.readers && a.addressed_ids)
     and (a.addresses = '{}'
          or concat_ws(' ', t.text, (select string_agg(lower(u.email), ' ')
                                       from links.link_owners o
                                       join links.users u on u.id = o.user_id
                                      where o.slug = c.slug)) like all (a.addresses))
     and (a.owners = '{}'
          or lower((select string_agg(concat_ws(' ', u.email, u.display_name), ' ')
                      from links.link_owners o
                      join links.users u on u.id = o.user_id
                     where o.slug = c.slug) collate "default") like all (a.owners))
     and (:list in ('visible', 'every', 'mine')
          or :list = 'shared' and exists (
               select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = c.slug offset 0)
          or exists (
               select from links.link_owners o
                where o.user_id = any(:users::uuid[])
                  and o.slug = c.slug
                  and (:list = 'owned' or o.is_primary = (:list = 'primary'))
               offset 0))
   order by c.place, c.slug collate "C"
   limit :limit
)
select found.place, l.*, c.clicks, c.clicked_at,
       coalesce(own.is_primary, false) as is_primary, own.is_primary is not null as is_owner,
       exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = found.slug) as is_recipient,
       coalesce((select u.display_name
                   from links.link_owners o
                   join links.users u on u.id = o.user_id
                  where o.slug = found.slug
                    and o.is_primary
                  limit 1), '') as owner_name
  from found
 cross join lateral (select * from links.shown_links where slug = found.slug offset 0) l
 cross join lateral (select clicks, clicked_at from links.links where slug = found.slug offset 0) c
 cross join lateral (
       select bool_or(is_primary) as is_primary
         from links.link_owners
        where user_id = any(:users::uuid[])
          and slug = found.slug) own
 order by found.place, l.slug
 limit :limit;

-- name: writeTexts
-- Brings links.link_texts up to date with the links in the JSON array :links, their tags, owners and shares; each has the
-- key of its address as `key`. In the collation of slugs only ASCII would get small letters.
insert into links.link_texts (slug, text, tags, readers, keys)
select l.slug, lower(concat_ws(' ', l.slug, a.names, l.title, l.url, l.description, t.words, o.names) collate "default"),
       coalesce(t.tags, '{}'),
       array(select m.user_id from links.link_owners m where m.slug = l.slug
             union
             select m.user_id from links.link_shares m where m.slug = l.slug
             union
             select links.everybody() where l.visibility = 'public'),
       array_remove(array[given.key, case when l.archived then 'archived' end,
                          case when l.expires_at is not null then 'expires' end,
                          case when l.clicks >= l.max_visits then 'used_up' end], null)
         || links.clicks_keys(0, l.clicks)
  from jsonb_to_recordset(:links::jsonb) as given(slug text, key text)
  join links.links l on l.slug = given.slug
 cross join lateral (
        select string_agg(name, ' ') as names from links.names where link_id = l.id and name <> l.slug) a
 cross join lateral (
        select string_agg(tag, ' ') as words, array_agg(tag::text order by tag) as tags
          from links.link_tags where slug = l.slug) t
 cross join lateral (
        select string_agg(concat_ws(' ', u.display_name, split_part(u.email, '@', 1)), ' ') as names
          from links.link_owners m
          join links.users u on u.id = m.user_id
         where m.slug = l.slug) o
on conflict (slug) do update
   set text = excluded.text, tags = excluded.tags, readers = excluded.readers, keys = excluded.keys;

-- name: listAddresses
-- The urls of the links in the JSON array :slugs.
select slug, url
  from links.links
 where slug in (select jsonb_array_elements_text(:slugs::jsonb))
 limit :limit;

-- name: suggestLinks
-- Links of a list (`visible` or `every`) with a name that is :folded but for dashes, then those with a name in the JSON
-- array :near, then those whose slug begins with :prefix, then those whose words, each after a space, match all of the
-- JSON array :patterns. Only the first 200 links with a word that begins with :word are read for that, and the first
-- 1,000 of the user's own links. Links that the user (null: nobody) may not see are not read and take no place. Links
-- whose visits have ended at :now are left out. :last sorts after all characters of words.
with near as (
  select l.slug, wanted.rank
    from (select n.link_id, 0 as rank
            from links.names n
           where replace(n.name, '-', '') = :folded
          union all
          select n.link_id, 1
            from jsonb_array_elements_text(:near::jsonb) as given(name)
           cross join lateral (select link_id from links.names where name = given.name offset 0) n) wanted
   cross join lateral (select slug, visibility from links.links where id = wanted.link_id offset 0) l
   where l.visibility = 'public'
      or :list = 'every'
      or exists (select from links.link_owners o where o.user_id = any(:users::uuid[]) and o.slug = l.slug)
      or exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = l.slug)
  union all
  select slug, 2
    from links.slugs_in_list(:list, :users::uuid[], '', :prefix, :prefix || '{', 50)
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
     from links.slugs_in_list('mine', :users::uuid[], '', '', '{', 1000)
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
