-- name: findLink
-- A link by id, and what the :users, a user and groups, are to it. Empty when no link has this id.
select l.*, (select c.clicks from links.links c where c.slug = l.slug) as clicks,
       exists (select from links.link_owners o where o.user_id = any(:users::uuid[]) and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.id = :id;

-- name: findLinkBySlug
-- Like findLink, by slug. Empty when no link has this slug.
select l.*, (select c.clicks from links.links c where c.slug = l.slug) as clicks,
       exists (select from links.link_owners o where o.user_id = any(:users::uuid[]) and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = any(:users::uuid[]) and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.slug = :slug;

-- name: listTakenSlugs
-- Those of the JSON array :slugs that links have.
select slug
  from links.links
 where slug in (select jsonb_array_elements_text(:slugs::jsonb))
 limit :limit;

-- name: countLinks
-- How many links there are; more than :most are not counted.
select count(*) as count
  from (select from links.links limit :most) counted;

-- name: lockLink
-- Locks a link until the transaction ends. Empty when no link has this id.
select slug
  from links.links
 where id = :id
   for update;

-- name: addLink
-- Empty when the slug is taken.
insert into links.links (slug, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                         created_at, updated_at)
values (:slug, :url, :title, :description, :visibility, :append_path, :expires_at, :max_visits, :archived, :at, :at)
on conflict (slug) do nothing
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
-- Tells every instance, when the transaction commits, that the slugs in the JSON array :slugs changed.
select pg_notify('links_changed', slug)
  from jsonb_array_elements_text(:slugs::jsonb) as slug;
