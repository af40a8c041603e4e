-- name: listUnplanned
-- Looks at the next :links links after the slug :after. Gives those whose address is to be checked and has no check planned
-- up to :until, and the last slug of all; null after the last link.
with looked as (
  select l.slug, l.url, links.is_checkable(l) as is_checkable
    from links.links l
   where l.slug > :after
   order by l.slug
   limit :links
), removed as (
  delete from links.health h
   using looked l
   where h.slug = l.slug
     and (h.url <> l.url or not l.is_checkable)
)
select coalesce((select jsonb_agg(jsonb_build_object('slug', l.slug, 'url', l.url))
                   from looked l
                  where l.is_checkable
                    and not exists (
                        select from links.health h where h.slug = l.slug and h.url = l.url and h.due_at <= :until)),
                '[]') as links,
       (select slug from looked order by slug desc limit 1) as last;

-- name: planChecks
-- Plans the checks of the JSON array :links (`slug`, `url`, `host`) within :seconds, spread evenly by slug.
insert into links.health as h (slug, url, host, due_at)
select l.slug, g.url, g.host,
       :now::timestamptz + :seconds::bigint * (hashtext(l.slug) & 2147483647) / 2147483648.0 * interval '1 second'
  from jsonb_to_recordset(:links::jsonb) as g(slug text, url text, host text)
  join links.links l on l.slug = g.slug
 order by l.slug
on conflict (slug) do update set due_at = excluded.due_at
 where h.url = excluded.url;

-- name: claimChecks
-- Claims at most :limit links that are due, each of another host that nobody asks now. The host is claimed for :seconds.
-- One that is claimed for more than twice as long was claimed before the clock was set back; the clocks of instances
-- differ less. Looks at the :window links that wait longest.
with due as (
  select h.slug, h.host, h.due_at
    from links.health h
    join links.links l on l.slug = h.slug and l.url = h.url
   where h.due_at <= :now
     and links.is_checkable(l)
   order by h.due_at
   limit :window
), next as (
  select distinct on (d.host) d.slug, d.host, d.due_at
    from due d
   where not exists (
         select from links.check_hosts c
          where c.host = d.host
            and c.free_at > :now
            and c.free_at <= :now::timestamptz + 2 * :seconds::bigint * interval '1 second')
   order by d.host, d.due_at
), picked as (
  select slug, host
    from next
   order by due_at
   limit :limit
), claimed as (
  insert into links.check_hosts as c (host, free_at)
  select host, :now::timestamptz + :seconds::bigint * interval '1 second'
    from picked
   order by host
  on conflict (host) do update set free_at = excluded.free_at
   where c.free_at <= :now
      or c.free_at > excluded.free_at + :seconds::bigint * interval '1 second'
  returning host
)
select h.slug, h.url, h.host, h.state, h.since, h.missing_since
  from picked p
  join claimed c on c.host = p.host
  join links.health h on h.slug = p.slug
 limit :limit;

-- name: saveCheck
-- Stores what a check has found, and lets the host be asked again from :free_at on.
with freed as (
  update links.check_hosts
     set free_at = :free_at
   where host = :host
)
update links.health
   set state = :state, since = :since, checked_at = :now, status = :status, problem = :problem,
       missing_since = :missing_since, due_at = :due_at
 where slug = :slug
   and url = :url;

-- name: forgetHosts
-- Hosts that have been free since :before may be asked anyway.
delete from links.check_hosts
 where free_at < :before;

-- name: findHealth
-- Whether the address of a link is to be checked, whether it can be, and what its last check has found. Empty when no link
-- has this id.
select l.is_checked as enabled, links.is_checkable(l) as checkable, coalesce(h.state, 'unchecked') as state, h.since,
       h.checked_at, h.status, h.problem
  from links.links l
  left join links.health h on h.slug = l.slug and h.url = l.url and links.is_checkable(l)
 where l.id = :link;

-- name: setChecked
update links.links
   set is_checked = :enabled
 where id = :link;

-- name: listChecked
-- The links in the state :state after the slug :after: those that the :users, a user and groups, own, or all where :users
-- is null. Each branch is read in the order of its index.
with page as (
  (select h.slug
     from links.health h
    cross join lateral (
          select links.is_checkable(l) as is_checkable
            from links.links l
           where l.slug = h.slug
             and l.url = h.url offset 0) l
    where :users::uuid[] is null
      and h.state = :state
      and h.slug > :after
      and l.is_checkable
    order by h.slug
    limit :limit)
  union
  (select own.slug
     from unnest(:users::uuid[]) member
    cross join lateral (
          select o.slug
            from links.link_owners o
           cross join lateral (
                 select links.is_checkable(l) as is_checkable
                   from links.health h
                   join links.links l on l.slug = h.slug and l.url = h.url
                  where h.slug = o.slug
                    and h.state = :state offset 0) l
           where o.user_id = member
             and o.slug > :after
             and l.is_checkable
           order by o.slug
           limit :limit) own)
)
select l.id, l.slug, l.url, l.title, l.visibility, h.state, h.since, h.checked_at, h.status, h.problem,
       (select jsonb_agg(u.email order by o.is_primary desc, u.email)
          from links.link_owners o
          join links.users u on u.id = o.user_id
         where o.slug = l.slug) as owners
  from page
 cross join lateral (select * from links.health where slug = page.slug offset 0) h
 cross join lateral (select * from links.links where slug = page.slug offset 0) l
 order by l.slug
 limit :limit;

-- name: listBrokenOf
-- Those of the slugs in the JSON array :slugs whose links are broken.
select h.slug
  from links.health h
  join links.links l on l.slug = h.slug and l.url = h.url
 where h.slug = any(array(select jsonb_array_elements_text(:slugs::jsonb)))
   and h.state = 'broken'
   and links.is_checkable(l)
 limit :limit;
