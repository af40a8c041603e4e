-- name: lockTokens
-- Holds the user's row until the transaction ends, so that two tokens created at once cannot exceed the limit together.
select id
  from links.users
 where id = :user
   for no key update;

-- name: addToken
-- Empty when the user has `max` tokens.
insert into links.tokens (user_id, name, scope, token_hash, created_at, expires_at)
select :user, :name, :scope, :token_hash, :created_at, :expires_at
 where (select count(*) from links.tokens where user_id = :user) < :max
returning id, name, scope, created_at, expires_at, last_used_at;

-- name: removeExpiredTokens
delete from links.tokens
 where user_id = :user
   and expires_at <= :now;

-- name: listTokens
-- All tokens of a user, newest first.
select id, name, scope, created_at, expires_at, last_used_at
  from links.tokens
 where user_id = :user
 order by created_at desc, id;

-- name: removeToken
-- Empty when the user (null: anybody) has no such token.
delete from links.tokens t
 using links.users u
 where u.id = t.user_id
   and t.id = :id
   and (:user::uuid is null or t.user_id = :user)
returning t.name, u.email;

-- name: findBearer
-- The user whose token has this hash. Empty when no token has it, it has expired, or the user is disabled.
select t.id as token_id, t.name as token_name, t.scope, t.last_used_at, u.id, u.email, u.display_name, u.role, u.created_at,
       u.disabled_at
  from links.tokens t
  join links.users u on u.id = t.user_id
 where t.token_hash = :token_hash
   and (t.expires_at is null or t.expires_at > :now)
   and u.disabled_at is null;

-- name: touchToken
-- Records a use, at most once a minute.
update links.tokens
   set last_used_at = :now
 where id = :id
   and (last_used_at is null or last_used_at < :now::timestamptz - interval '1 minute');
