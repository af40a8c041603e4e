-- name: findLink
-- A link by id, and what the :users, a user and groups, are to it. Empty when no link has this id.
select l.*, (select c.clicks from links.links c where c.slug = l.slug) as clicks,
       exists (select from links.link_owners o where o.user_id = any(:users::uuid[]) and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.id = :id;

-- name: findLinkBySlug
-- Like findLink, by slug or alias. Empty when no link has this name.
select l.*, (select c.clicks from links.links c where c.slug = l.slug) as clicks,
       exists (select from links.link_owners o where o.user_id = any(:users::uuid[]) and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.id = (select n.link_id from links.names n where n.name = :slug);

-- name: listTakenSlugs
-- Those of the JSON array :slugs that are slugs or aliases of links.
select name as slug
  from links.names
 where name in (select jsonb_array_elements_text(:slugs::jsonb))
 limit :limit;

-- name: lockLink
-- Locks a link until the transaction ends. Empty when no link has this id.
select slug
  from links.links
 where id = :id
   for update;

-- name: addLink
-- Adds a link with the names of the JSON array :names: its slug and its aliases. Empty when another link has one of them;
-- then the transaction must be undone, because it has the others. Names are locked in their order, so that two writers
-- don't deadlock.
with new as materialized (
  select gen_random_uuid() as id
), named as (
  insert into links.names (name, link_id)
  select given.name, new.id
    from new
   cross join jsonb_array_elements_text(:names::jsonb) as given(name)
   order by given.name collate "C"
  on conflict (name) do nothing
  returning name
)
insert into links.links (slug, id, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                         created_at, updated_at)
select :slug, id, :url, :title, :description, :visibility, :append_path::boolean, :expires_at::timestamptz,
       :max_visits::bigint, :archived::boolean, :at::timestamptz, :at::timestamptz
  from new
 where (select count(*) from named) = jsonb_array_length(:names::jsonb)
returning id;

-- name: updateLink
update links.links
   set url = :url, title = :title, description = :description, visibility = :visibility,
       append_path = :append_path, expires_at = :expires_at, max_visits = :max_visits, archived = :archived,
       updated_at = :at
 where id = :id;

-- name: writeWords
-- Replaces the words of the links in the JSON array :links, each with `slug`, `words` and `is_public`.
with given as (
  select slug, word, is_public
    from jsonb_to_recordset(:links::jsonb) as g(slug text, words jsonb, is_public boolean)
   cross join lateral jsonb_array_elements_text(words) as word
), removed as (
  delete from links.link_words w
   where w.slug in (select slug from jsonb_to_recordset(:links::jsonb) as g(slug text))
     and not exists (select from given g where g.slug = w.slug and g.word = w.word)
)
insert into links.link_words (slug, word, is_public)
select slug, word, is_public
  from given
on conflict (slug, word) do update set is_public = excluded.is_public;

-- name: lockLoops
-- Links that lead to this resolver are written one at a time.
select pg_advisory_xact_lock(7203002);

-- name: announceLinks
-- Tells every instance, when the transaction commits, that the names in the JSON array :slugs changed.
select pg_notify('links_changed', slug)
  from jsonb_array_elements_text(:slugs::jsonb) as slug;
