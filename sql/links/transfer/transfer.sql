-- name: findLinksBySlugs
-- The links whose slugs are in a JSON array.
select l.*
  from jsonb_array_elements_text(:slugs::jsonb) as asked(slug)
  join links.shown_links l on l.slug = asked.slug
 limit :limit;

-- name: addImportedLinks
-- Creates the links of a JSON array, sorted by slug, with their owners, recipients and tags, and records in the history
-- that `actor` imported them. Gives the slugs that were created; links whose slug is taken are left out.
with wanted as materialized (
  select gen_random_uuid() as id, slug, url, title, description, visibility, append_path, expires_at, max_visits, archived, created_at, updated_at,
         tags, owners, recipients
    from jsonb_to_recordset(:links::jsonb)
         as w(slug text, url text, title text, description text, visibility text, append_path boolean,
              expires_at timestamptz, max_visits bigint, archived boolean, created_at timestamptz, updated_at timestamptz, tags jsonb, owners jsonb, recipients jsonb)
), named as (
  insert into links.names (name, link_id)
  select slug, id
    from wanted
   order by slug collate "C"
  on conflict (name) do nothing
  returning link_id
), added as (
  insert into links.links (slug, id, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                           created_at, updated_at)
  select slug, id, url, title, description, visibility, append_path, expires_at, max_visits, archived, created_at, updated_at
    from wanted
   where id in (select link_id from named)
  returning slug, id, url, visibility
), owned as (
  insert into links.link_owners (slug, user_id, is_primary)
  select a.slug, o.id, o.is_primary
    from added a
    join wanted w on w.slug = a.slug
   cross join lateral jsonb_to_recordset(w.owners) as o(id uuid, is_primary boolean)
), shared as (
  insert into links.link_shares (slug, user_id, shared_by, created_at)
  select a.slug, recipient.id::uuid, :actor::text, :at::timestamptz
    from added a
    join wanted w on w.slug = a.slug
   cross join lateral jsonb_array_elements_text(w.recipients) as recipient(id)
), tagged as (
  insert into links.link_tags (slug, tag, is_public)
  select a.slug, tag, a.visibility = 'public'
    from added a
    join wanted w on w.slug = a.slug
   cross join lateral jsonb_array_elements_text(w.tags) as tag
), noted as (
  insert into links.changes (link_id, at, actor, action, detail)
  select id, :at::timestamptz, :actor::text, 'imported', jsonb_build_object('url', jsonb_build_array(null, url))
    from added
)
select slug
  from added
 limit :limit;

-- name: addImportedAliases
-- Gives links the aliases of the JSON array :links, each with `slug` and `aliases`. Gives those that other links have.
with wanted as (
  select distinct on (alias) l.id, g.slug, alias
    from jsonb_to_recordset(:links::jsonb) as g(slug text, aliases jsonb)
   cross join lateral jsonb_array_elements_text(g.aliases) as alias
    join links.links l on l.slug = g.slug
   order by alias, g.slug
), added as (
  insert into links.names (name, link_id)
  select alias, id
    from wanted
   order by alias collate "C"
  on conflict (name) do nothing
  returning name, link_id
)
select g.slug, alias
  from jsonb_to_recordset(:links::jsonb) as g(slug text, aliases jsonb)
 cross join lateral jsonb_array_elements_text(g.aliases) as alias
  join links.links l on l.slug = g.slug
 where not exists (select from added a where a.name = alias and a.link_id = l.id)
 limit :limit;

-- name: countHiddenLinks
-- The number of private and secure links.
select count(*)::bigint as links
  from links.links
 where visibility <> 'public';

-- name: listLinksToExport
-- All links by slug, or the public ones, from after the slug `after`, with the e-mail addresses of the users they are
-- shared with.
select l.*,
       (select coalesce(jsonb_agg(u.email order by u.email), '[]'::jsonb)
          from links.link_shares s
          join links.users u on u.id = s.user_id
         where s.slug = l.slug) as shared_with
  from links.shown_links l
 where l.slug > :after
   and (not :public_only or l.visibility = 'public')
 order by l.slug
 limit :limit;
