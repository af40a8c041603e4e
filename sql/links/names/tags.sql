-- name: writeTags
-- Replaces the tags of a link by the JSON array :tags.
with removed as (
  delete from links.link_tags
   where slug = :slug
     and not :tags::jsonb ? tag
)
insert into links.link_tags (slug, tag, is_public)
select :slug, tag, :is_public
  from jsonb_array_elements_text(:tags::jsonb) as tag
on conflict (slug, tag) do update set is_public = excluded.is_public;

-- name: writeHiddenTags
-- Recomputes hidden_tags of the links in the JSON array :slugs from their owners, shares and tags. Tags of public links
-- are not hidden.
with members as (
  select user_id, slug from links.link_owners where slug in (select jsonb_array_elements_text(:slugs::jsonb))
  union
  select user_id, slug from links.link_shares where slug in (select jsonb_array_elements_text(:slugs::jsonb))
), wanted as (
  select m.user_id, t.tag, t.slug
    from members m
    join links.link_tags t on t.slug = m.slug and not t.is_public
), removed as (
  delete from links.hidden_tags h
   where h.slug in (select jsonb_array_elements_text(:slugs::jsonb))
     and not exists (select from wanted w where w.user_id = h.user_id and w.tag = h.tag and w.slug = h.slug)
)
insert into links.hidden_tags (user_id, tag, slug)
select user_id, tag, slug
  from wanted
on conflict (user_id, tag, slug) do nothing;

-- name: countTags
-- Adds the tags of the JSON array :links to the counters: each link counts for 1, or -1 where it is no longer so. Sorted by
-- tag: two writers lock the counters in the same order.
insert into links.tags (tag, links, public_links)
select tag, sum(change), coalesce(sum(change) filter (where visibility = 'public'), 0)
  from jsonb_to_recordset(:links::jsonb) as l(tags jsonb, visibility text, change int)
 cross join lateral jsonb_array_elements_text(tags) as tag
 group by tag
having sum(change) <> 0 or sum(change) filter (where visibility = 'public') <> 0
 order by tag collate "C"
on conflict (tag) do update
   set links = links.tags.links + excluded.links, public_links = links.tags.public_links + excluded.public_links;

-- name: listTags
-- All tags in use, with the number of their links.
select tag as slug, links as link_count
  from links.tags
 where links > 0
   and tag > :after
 order by tag
 limit :limit;

-- name: listVisibleTags
-- The tags of links that the :users, a user and groups, may see. Public links are counted in advance; of the others, only
-- those that these may see are read, and each counts once.
with hidden as (
  select distinct h.tag
    from unnest(:users::uuid[]) member
   cross join lateral (
         select distinct tag from links.hidden_tags where user_id = member and tag > :after order by tag limit :limit) h
   order by h.tag
   limit :limit
), own as (
  select hidden.tag, counted.links
    from hidden
   cross join lateral (
         select count(distinct slug) as links
           from links.hidden_tags
          where user_id = any(:users::uuid[])
            and tag = hidden.tag) counted
), open as (
  select tag, public_links
    from links.tags
   where public_links > 0
     and tag > :after
   order by tag
   limit :limit
)
select coalesce(open.tag, own.tag) as slug, coalesce(open.public_links, 0) + coalesce(own.links, 0) as link_count
  from open
  full join own on own.tag = open.tag
 order by 1
 limit :limit;
