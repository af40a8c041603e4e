-- name: addUser :optional
-- Empty when the e-mail address is known.
insert into links.users (email, display_name, role, created_at)
values ($1, $2, $3, $4)
on conflict (email) do nothing
returning id, email, display_name, role, created_at;

-- name: findUserByEmail :optional
-- Empty when nobody has this address.
select id, email, display_name, role, created_at
  from links.users
 where email = $1;

-- name: listUsers :many
-- Everybody by e-mail address, after address $1.
select id, email, display_name, role, created_at
  from links.users
 where email > $1
 order by email
 limit $2;

-- name: lockAdmins :many
-- All admins and user $1, who stay as they are until the transaction ends: of two at once, the second sees what the
-- first has left. User $1 is locked in the same order as the others: locked later, two transactions could deadlock.
select id, email, display_name, role, created_at
  from links.users
 where role = 'admin' or id = $1
 order by id
   for no key update;

-- name: setRole :optional
-- Empty when there is no such user.
update links.users
   set role = $2
 where id = $1
returning id, email, display_name, role, created_at;

-- name: takeTokenTurn :exec
-- Tokens of user $1 are made one at a time, so that none is one too many.
select id
  from links.users
 where id = $1
   for no key update;

-- name: addToken :optional
-- Empty when user $1 has $7 tokens.
insert into links.tokens (user_id, name, scope, token_hash, created_at, expires_at)
select $1, $2, $3, $4, $5, $6
 where (select count(*) from links.tokens where user_id = $1) < $7
returning id, name, scope, created_at, expires_at, last_used_at;

-- name: removeExpiredTokens :exec
-- The tokens of user $1 that have expired at $2.
delete from links.tokens
 where user_id = $1
   and expires_at <= $2;

-- name: listTokens :many
-- All tokens of user $1, newest first.
select id, name, scope, created_at, expires_at, last_used_at
  from links.tokens
 where user_id = $1
 order by created_at desc, id;

-- name: removeToken :optional
-- Empty when user $2 (null: anybody) has no token $1.
delete from links.tokens
 where id = $1
   and ($2::uuid is null or user_id = $2)
returning id;

-- name: findToken :optional
-- Whose the token with hash $1 is; empty when it is unknown, or expired at $2.
select t.id as token_id, t.scope, t.last_used_at, u.id, u.email, u.display_name, u.role, u.created_at
  from links.tokens t
  join links.users u on u.id = t.user_id
 where t.token_hash = $1
   and (t.expires_at is null or t.expires_at > $2);

-- name: touchToken :exec
-- Notes a use, unless one less than a minute ago is noted.
update links.tokens
   set last_used_at = $2
 where id = $1
   and (last_used_at is null or last_used_at < $2::timestamptz - interval '1 minute');

-- name: importLinks :many
-- Makes the links of the JSON array $1, sorted by slug, with their owners, recipients and tags, and notes that $2 did it
-- at $3. Gives the slugs of those that were made; one that is taken is left out.
with wanted as (
  select slug, url, title, description, visibility, append_path, created_at, updated_at, tags, owners, recipients
    from jsonb_to_recordset($1::jsonb)
         as w(slug text, url text, title text, description text, visibility text, append_path boolean,
              created_at timestamptz, updated_at timestamptz, tags jsonb, owners jsonb, recipients jsonb)
), added as (
  insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
  select slug, url, title, description, visibility, append_path, created_at, updated_at
    from wanted
   order by slug collate "C"
  on conflict (slug) do nothing
  returning slug, id, url, visibility
), owned as (
  insert into links.link_owners (slug, user_id, is_primary)
  select a.slug, o.id, o.is_primary
    from added a
    join wanted w on w.slug = a.slug
   cross join lateral jsonb_to_recordset(w.owners) as o(id uuid, is_primary boolean)
), shared as (
  insert into links.link_shares (slug, user_id, shared_by, created_at)
  select a.slug, recipient.id::uuid, $2::text, $3::timestamptz
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
  select id, $3::timestamptz, $2::text, 'imported', jsonb_build_object('url', jsonb_build_array(null, url))
    from added
)
select slug
  from added
 limit $4;

-- name: countHiddenLinks :one
-- How many links are private or secure.
select count(*)::bigint as links
  from links.links
 where visibility <> 'public';

-- name: listLinksToExport :many
-- All links by slug, after slug $1, with the e-mail addresses of those with whom they are shared.
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at,
       (select coalesce(jsonb_agg(u.email order by u.email), '[]'::jsonb)
          from links.link_shares s
          join links.users u on u.id = s.user_id
         where s.slug = l.slug) as shared_with
  from links.shown_links l
 where l.slug > $1
 order by l.slug
 limit $2;
