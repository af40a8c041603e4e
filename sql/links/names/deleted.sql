-- name: moveLink
-- Deletes a link and keeps its rows to be restored, with the newest :changes of its changes. The counters of its tags stay.
with kept as (
  insert into links.deleted_links (id, slug, deleted_at, deleted_by, link, aliases, shares, tags, changes,
                                   clicks, sources)
  select l.id, l.slug, :at, :actor, to_jsonb(l),
         (select coalesce(jsonb_agg(n.name), '[]') from links.names n where n.link_id = l.id and n.name <> l.slug),
         (select coalesce(jsonb_agg(to_jsonb(s)), '[]') from links.link_shares s where s.slug = l.slug),
         (select coalesce(jsonb_agg(t.tag), '[]') from links.link_tags t where t.slug = l.slug),
         (select coalesce(jsonb_agg(to_jsonb(c)), '[]')
            from (select * from links.changes where link_id = l.id order by id desc limit :changes) c),
         (select coalesce(jsonb_agg(to_jsonb(c)), '[]') from links.clicks c where c.link_id = l.id),
         (select coalesce(jsonb_agg(to_jsonb(s)), '[]') from links.click_sources s where s.link_id = l.id)
    from links.links l
   where l.id = :id
  returning deletion, slug
), owned as (
  insert into links.deleted_owners (user_id, deletion, is_primary)
  select o.user_id, k.deletion, o.is_primary
    from kept k
    join links.link_owners o on o.slug = k.slug
)
delete from links.links
 where id = :id;

-- name: lockDeletedLink
-- Locks a deleted link until the transaction ends. Empty when none has this id.
select d.deletion, d.slug, d.link ->> 'url' as url, (d.link ->> 'append_path')::boolean as append_path,
       d.link ->> 'visibility' as visibility, d.tags, d.link ->> 'title' as title, d.aliases,
       exists (select from links.deleted_owners o where o.user_id = any(:users::uuid[]) and o.deletion = d.deletion) as is_owner
  from links.deleted_links d
 where d.id = :id
   for update;

-- name: restoreLink
-- Puts a deleted link back, with all of its rows. Empty when another link has its slug or one of its aliases; then the
-- transaction must be undone, as in addLink.
with deleted as (
  select deletion, link, jsonb_build_array(slug) || aliases as names, shares, tags, changes, clicks, sources
    from links.deleted_links
   where deletion = :deletion
), named as (
  insert into links.names (name, link_id)
  select name, (d.link ->> 'id')::uuid
    from deleted d
   cross join lateral jsonb_array_elements_text(d.names) as name
   order by name collate "C"
  on conflict (name) do nothing
  returning name
), restored as (
  insert into links.links (slug, id, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                           is_checked, created_at, updated_at, clicks, clicked_at)
  select l.slug, l.id, l.url, l.title, l.description, l.visibility, l.append_path, l.expires_at, l.max_visits, l.archived,
         l.is_checked, l.created_at, l.updated_at, l.clicks, l.clicked_at
    from deleted d
   cross join lateral jsonb_populate_record(null::links.links, d.link) l
   where (select count(*) from named) = jsonb_array_length(d.names)
  returning slug, visibility
), owned as (
  insert into links.link_owners (user_id, slug, is_primary)
  select o.user_id, r.slug, o.is_primary
    from restored r
    join links.deleted_owners o on o.deletion = :deletion
), shared as (
  insert into links.link_shares (user_id, slug, shared_by, created_at)
  select s.user_id, s.slug, s.shared_by, s.created_at
    from restored
   cross join deleted d
   cross join lateral jsonb_populate_recordset(null::links.link_shares, d.shares) s
), tagged as (
  insert into links.link_tags (slug, tag, is_public)
  select r.slug, tag, r.visibility = 'public'
    from restored r
   cross join deleted d
   cross join lateral jsonb_array_elements_text(d.tags) as tag
), changed as (
  insert into links.changes (id, link_id, at, actor, action, detail)
  overriding system value
  select c.id, c.link_id, c.at, c.actor, c.action, c.detail
    from restored
   cross join deleted d
   cross join lateral jsonb_populate_recordset(null::links.changes, d.changes) c
), clicked as (
  insert into links.clicks (link_id, day, kind, clicks)
  select c.link_id, c.day, c.kind, c.clicks
    from restored
   cross join deleted d
   cross join lateral jsonb_populate_recordset(null::links.clicks, d.clicks) c
), came as (
  insert into links.click_sources (link_id, day, referrers, clients)
  select s.link_id, s.day, s.referrers, s.clients
    from restored
   cross join deleted d
   cross join lateral jsonb_populate_recordset(null::links.click_sources, d.sources) s
), moved as (
  delete from links.deleted_links
   where deletion = :deletion
     and exists (select from restored)
)
select slug
  from restored;

-- name: listDeletedLinks
-- Deleted links before the deletion :before, newest first: those that the :users, a user and groups, owned, or all where
-- :users is null.
with page as (
  (select owned.deletion
     from unnest(:users::uuid[]) member
    cross join lateral (
          select o.deletion
            from links.deleted_owners o
           where o.user_id = member
             and o.deletion < :before
           order by o.deletion desc
           limit :limit) owned)
  union
  (select deletion
     from links.deleted_links
    where :users::uuid[] is null
      and deletion < :before
    order by deletion desc
    limit :limit)
)
select d.deletion, d.id, d.slug, d.link ->> 'url' as url, d.link ->> 'title' as title,
       d.link ->> 'visibility' as visibility, d.deleted_at, d.deleted_by
  from page
 cross join lateral (select * from links.deleted_links where deletion = page.deletion offset 0) d
 order by d.deletion desc
 limit :limit;

-- name: lockDeletedOwned
-- Locks the first deleted links that a user owned, until the transaction ends.
select d.deletion
  from links.deleted_owners o
  join links.deleted_links d on d.deletion = o.deletion
 where o.user_id = :user
 order by d.deletion
   for update of d
 limit :limit;

-- name: moveDeletedOwners
-- Gives the place of the owner :from in the deleted links of the JSON array :deletions to the user :to, with a change in
-- the history that is kept with each.
with gone as (
  delete from links.deleted_owners
   where user_id = :from
     and deletion in (select jsonb_array_elements_text(:deletions::jsonb)::bigint)
  returning deletion, is_primary
), moved as (
  insert into links.deleted_owners as o (user_id, deletion, is_primary)
  select :to, deletion, is_primary
    from gone
  on conflict (user_id, deletion) do update set is_primary = o.is_primary or excluded.is_primary
)
update links.deleted_links d
   set changes = d.changes || jsonb_build_object(
         'id', nextval(pg_get_serial_sequence('links.changes', 'id')), 'link_id', d.id, 'at', :at::timestamptz,
         'actor', :actor::text, 'action', 'transferred', 'detail', :detail::jsonb)
  from gone
 where d.deletion = gone.deletion;
