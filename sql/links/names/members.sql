-- name: listOwners
-- The owners of a link, the primary owner first.
select u.id, u.email, o.is_primary
  from links.links l
  join links.link_owners o on o.slug = l.slug
  join links.users u on u.id = o.user_id
 where l.id = :link
 order by o.is_primary desc, u.email;

-- name: addOwner
-- Empty when the user is an owner already.
insert into links.link_owners (slug, user_id, is_primary)
values (:slug, :user, :is_primary)
on conflict (user_id, slug) do nothing
returning is_primary;

-- name: makePrimary
-- Makes a user the primary owner of a link without one.
insert into links.link_owners (slug, user_id, is_primary)
values (:slug, :user, true)
on conflict (user_id, slug) do update set is_primary = true;

-- name: makeCoOwner
-- Makes the primary owner of a link a co-owner.
update links.link_owners
   set is_primary = false
 where slug = :slug
   and is_primary;

-- name: removeOwner
-- Removes a co-owner; the primary owner stays. Empty when the user is not an owner.
with found as (
  select o.user_id, o.slug, o.is_primary, u.email
    from links.link_owners o
    join links.users u on u.id = o.user_id
   where o.slug = :slug
     and o.user_id = :user
), removed as (
  delete from links.link_owners
   where slug = :slug
     and user_id = :user
     and not is_primary
)
select is_primary, email
  from found;

-- name: listShares
-- The recipients of a link by e-mail address.
select u.id, u.email, s.shared_by, s.created_at
  from links.links l
  join links.link_shares s on s.slug = l.slug
  join links.users u on u.id = s.user_id
 where l.id = :link
 order by u.email;

-- name: addShare
-- Empty when the link is shared with the user already.
insert into links.link_shares (slug, user_id, shared_by, created_at)
values (:slug, :user, :shared_by, :created_at)
on conflict (user_id, slug) do nothing
returning created_at;

-- name: removeShare
-- Empty when the link is not shared with the user.
delete from links.link_shares s
 using links.users u
 where s.slug = :slug
   and s.user_id = :user
   and u.id = s.user_id
returning u.email;

-- name: countPlaces
-- The links that a user owns or co-owns, those shared with the user, and the deleted ones that the user owned.
select (select count(*) from links.link_owners where user_id = :user) as owned,
       (select count(*) from links.link_shares where user_id = :user) as shared,
       (select count(*) from links.deleted_owners where user_id = :user) as deleted;

-- name: lockOwnedLinks
-- Locks the first links that a user owns or co-owns, until the transaction ends.
select l.slug
  from links.link_owners o
  join links.links l on l.slug = o.slug
 where o.user_id = :user
 order by l.slug
   for update of l
 limit :limit;

-- name: moveOwners
-- Gives the place of the owner :from in the links of the JSON array :slugs to the user :to. Who is a co-owner already
-- becomes the primary owner where :from was.
with gone as (
  delete from links.link_owners
   where user_id = :from
     and slug in (select jsonb_array_elements_text(:slugs::jsonb))
  returning slug, is_primary
), moved as (
  insert into links.link_owners as o (user_id, slug, is_primary)
  select :to, slug, is_primary
    from gone
  on conflict (user_id, slug) do update set is_primary = o.is_primary or excluded.is_primary
)
insert into links.changes (link_id, at, actor, action, detail)
select l.id, :at, :actor, 'transferred', :detail
  from gone g
  join links.links l on l.slug = g.slug;

-- name: lockSharedLinks
-- Locks the first links that are shared with a user, until the transaction ends.
select l.slug
  from links.link_shares s
  join links.links l on l.slug = s.slug
 where s.user_id = :user
 order by l.slug
   for update of l
 limit :limit;

-- name: moveShares
-- Gives the shares of the user :from to the user :to, in the links of the JSON array :slugs. Where :to is an owner or a
-- recipient already, the share is only removed.
with gone as (
  delete from links.link_shares
   where user_id = :from
     and slug in (select jsonb_array_elements_text(:slugs::jsonb))
  returning slug, shared_by, created_at
), moved as (
  insert into links.link_shares (user_id, slug, shared_by, created_at)
  select :to, g.slug, g.shared_by, g.created_at
    from gone g
   where not exists (select from links.link_owners o where o.user_id = :to and o.slug = g.slug)
  on conflict (user_id, slug) do nothing
)
insert into links.changes (link_id, at, actor, action, detail)
select l.id, :at, :actor, 'transferred', :detail
  from gone g
  join links.links l on l.slug = g.slug;
