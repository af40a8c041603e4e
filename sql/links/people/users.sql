-- name: addUser
-- Empty when the e-mail address is known.
insert into links.users (email, display_name, role, created_at)
values (:email, :display_name, :role, :created_at)
on conflict (email) do nothing
returning id, email, display_name, role, created_at, disabled_at;

-- name: findUserByEmail
-- Empty when nobody has this address.
select id, email, display_name, role, created_at, disabled_at
  from links.users
 where email = :email;

-- name: listIds
-- The ids of those of the users in the JSON array :emails that are known.
select id
  from links.users
 where email = any(array(select jsonb_array_elements_text(:emails::jsonb)))
 limit :limit;

-- name: listUsers
-- All people by e-mail address, from after the address `after`.
select id, email, display_name, role, created_at, disabled_at
  from links.users
 where email > :after
   and not links.is_group(email)
 order by email
 limit :limit;

-- name: listPrimaryOwners
-- People who are the primary owner of a link, by e-mail address.
select email
  from links.users u
 where not links.is_group(email)
   and exists (select from links.link_owners o where o.user_id = u.id and o.is_primary)
 order by email
 limit :limit;

-- name: listUsersBy
-- People whose e-mail address begins with :beginning, and with :groups groups whose name does.
select email
  from links.users
 where email >= :beginning
   and email < :beginning || chr(1114111)
   and (:groups or not links.is_group(email))
 order by email
 limit :limit;

-- name: listPeopleOf
-- Owners and recipients, whose e-mail address begins with :beginning, of links that the :users, a user and groups, own or
-- were given to read; groups only with :groups. Only the first :max_links of these links by slug are read.
with own as (
  select slug
    from links.slugs_in_list('mine', :users::uuid[], '', '', '{', :max_links)
   order by slug
   limit :max_links
), members as (
  select o.user_id
    from own
   cross join lateral (select user_id from links.link_owners where slug = own.slug offset 0) o
  union
  select s.user_id
    from own
   cross join lateral (select user_id from links.link_shares where slug = own.slug offset 0) s
)
select u.email
  from members m
 cross join lateral (select id, email from links.users where id = m.user_id offset 0) u
 where u.id <> :user
   and starts_with(u.email, :beginning)
   and (:groups or not links.is_group(u.email))
 order by u.email
 limit :limit;

-- name: countUsers
-- How many people there are; more than :most are not counted.
select count(*) as count
  from (select from links.users where not links.is_group(email) limit :most) counted;

-- name: lockAdmins
-- Locks all admins and the user until the transaction ends: of two that demote each other, the second sees what the
-- first has left. All rows are locked in one order, so that two transactions cannot deadlock.
select id, email, display_name, role, created_at, disabled_at
  from links.users
 where role = 'admin' or id = :user
 order by id
   for no key update;

-- name: setRole
-- No row if nobody has this id.
update links.users
   set role = :role
 where id = :user
   and not links.is_group(email)
returning id, email, display_name, role, created_at, disabled_at;

-- name: setDisabled
-- Disables a user from :at on, or enables the user where that is null. No row if nobody has this id.
update links.users
   set disabled_at = :at
 where id = :user
   and not links.is_group(email)
returning id, email, display_name, role, created_at, disabled_at;
