-- name: addUser
-- Empty when the e-mail address is known.
insert into links.users (email, display_name, role, created_at)
values (:email, :display_name, :role, :created_at)
on conflict (email) do nothing
returning id, email, display_name, role, created_at;

-- name: findUserByEmail
-- Empty when nobody has this address.
select id, email, display_name, role, created_at
  from links.users
 where email = :email;

-- name: listUsers
-- All users by e-mail address, from after the address `after`.
select id, email, display_name, role, created_at
  from links.users
 where email > :after
 order by email
 limit :limit;

-- name: lockAdmins
-- Locks all admins and the user until the transaction ends: of two that demote each other, the second sees what the
-- first has left. All rows are locked in one order, so that two transactions cannot deadlock.
select id, email, display_name, role, created_at
  from links.users
 where role = 'admin' or id = :user
 order by id
   for no key update;

-- name: setRole
-- Empty when there is no such user.
update links.users
   set role = :role
 where id = :user
returning id, email, display_name, role, created_at;
