-- name: findLink :optional
-- A link by id ($1), and what user $2 is to it. Empty when there is no such link.
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at,
       exists (select from links.link_owners o where o.user_id = $2::uuid and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = $2::uuid and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.id = $1;

-- name: findLinkBySlug :optional
-- As findLink, by slug. Empty when there is no such link.
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at,
       exists (select from links.link_owners o where o.user_id = $2::uuid and o.slug = l.slug) as is_owner,
       exists (select from links.link_shares s where s.user_id = $2::uuid and s.slug = l.slug) as is_recipient
  from links.shown_links l
 where l.slug = $1;

-- name: lockLink :optional
-- Holds a link until the transaction ends: changes of one link come one after the other. Empty when there is none.
select slug
  from links.links
 where id = $1
   for update;

-- name: listLinks :many
-- All links by slug, after slug $1.
select id, slug, url, title, description, tags, owners, visibility, append_path, created_at, updated_at
  from links.shown_links
 where slug > $1
 order by slug
 limit $2;

-- name: listOwnLinks :many
-- The links that user $1 owns or co-owns, by slug, after slug $2: first whose turn it is, and only those are then looked
-- up (`offset 0`), or else a deep page would pass by all links before it.
with page as (
  select slug
    from links.link_owners
   where user_id = $1
     and slug > $2
   order by slug
   limit $3
)
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at
  from page
 cross join lateral (
         select s.id, s.slug, s.url, s.title, s.description, s.tags, s.owners, s.visibility, s.append_path, s.created_at,
                s.updated_at
           from links.shown_links s
          where s.slug = page.slug
         offset 0
       ) l
 order by page.slug
 limit $3;

-- name: linkWindowEnd :optional
-- The last slug of the next $6 that a list looks through, from $4 (exclusive) to $5 (inclusive). The list is $2 of user
-- $1: `mine` (`primary`, `co` or `shared` alone), `visible` (public links and the user's), or `every` link; of the last
-- two those with tag $3 alone unless it is ''. Empty when fewer are left. It stops at no link that the user may not see,
-- and looks at none, since neither the slug nor the time may tell of one.
with candidates as (
  (select slug
     from links.link_owners
    where ($2 in ('mine', 'primary', 'co') or $2 = 'visible' and $3 = '')
      and user_id = $1
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union
  (select slug
     from links.link_shares
    where ($2 in ('mine', 'shared') or $2 = 'visible' and $3 = '')
      and user_id = $1
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union
  (select slug
     from links.links
    where $2 = 'visible'
      and $3 = ''
      and visibility = 'public'
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union all
  (select slug
     from links.link_tags
    where $2 = 'visible'
      and tag = $3
      and is_public
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union all
  (select slug
     from links.hidden_tags
    where $2 = 'visible'
      and user_id = $1
      and tag = $3
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union all
  (select slug
     from links.links
    where $2 = 'every'
      and $3 = ''
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
  union all
  (select slug
     from links.link_tags
    where $2 = 'every'
      and tag = $3
      and slug > $4
      and slug <= $5
    order by slug
    limit $6)
)
select slug
  from candidates
 order by slug
offset $6 - 1
 limit 1;

-- name: findLinks :many
-- The links of a list, as linkWindowEnd has it, from slug $4 (exclusive) to $5 (inclusive), with visibility $6 unless it
-- is '', and with each text of the JSON array $7 of patterns in slug, title, url or tags; not those whose slug begins
-- with $8 unless it is ''. With the clicks since day $9. Links are looked up one by one (`offset 0`): whoever may see few
-- does not pass by all of them.
with candidates as (
  select slug
    from links.link_owners
   where ($2 in ('mine', 'primary', 'co') or $2 = 'visible' and $3 = '')
     and user_id = $1
     and ($2 in ('mine', 'visible') or is_primary = ($2 = 'primary'))
     and slug > $4
     and slug <= $5
  union
  select slug
    from links.link_shares
   where ($2 in ('mine', 'shared') or $2 = 'visible' and $3 = '')
     and user_id = $1
     and slug > $4
     and slug <= $5
  union
  select slug
    from links.links
   where $2 = 'visible'
     and $3 = ''
     and visibility = 'public'
     and slug > $4
     and slug <= $5
  union all
  select slug
    from links.link_tags
   where $2 = 'visible'
     and tag = $3
     and is_public
     and slug > $4
     and slug <= $5
  union all
  select slug
    from links.hidden_tags
   where $2 = 'visible'
     and user_id = $1
     and tag = $3
     and slug > $4
     and slug <= $5
  union all
  select slug
    from links.links
   where $2 = 'every'
     and $3 = ''
     and slug > $4
     and slug <= $5
  union all
  select slug
    from links.link_tags
   where $2 = 'every'
     and tag = $3
     and slug > $4
     and slug <= $5
), found as (
  select c.slug
    from candidates c
   cross join lateral (select slug, title, url, visibility from links.links where slug = c.slug offset 0) l
   where ($6 = '' or l.visibility = $6)
     and ($8 = '' or not starts_with(l.slug, $8))
     and ($3 = '' or $2 in ('visible', 'every')
          or exists (select from links.link_tags t where t.slug = l.slug and t.tag = $3))
     and ($7 = '[]'::jsonb
          or lower(concat_ws(' ', l.slug, l.title, l.url,
                             (select string_agg(t.tag, ' ') from links.link_tags t where t.slug = l.slug)))
             like all (array(select lower(pattern) from jsonb_array_elements_text($7) as pattern)))
   order by c.slug
   limit $10
)
select l.id, l.slug, l.url, l.title, l.tags, l.visibility,
       coalesce(own.is_primary, false) as is_primary, own.slug is not null as is_owner,
       given.slug is not null as is_recipient,
       coalesce((select sum(c.clicks)
                   from links.clicks c
                  where c.link_id = l.id
                    and c.day >= $9::text::date
                    and c.kind <> 'preview'), 0)::bigint as clicks
  from found
 cross join lateral (
         select s.id, s.slug, s.url, s.title, s.tags, s.visibility
           from links.shown_links s
          where s.slug = found.slug
         offset 0
       ) l
  left join lateral (
         select slug, is_primary from links.link_owners where user_id = $1 and slug = found.slug offset 0) own on true
  left join lateral (
         select slug from links.link_shares where user_id = $1 and slug = found.slug offset 0) given on true
 order by found.slug
 limit $10;

-- name: addLink :optional
-- Empty when the slug is taken.
insert into links.links (slug, url, title, description, visibility, append_path, created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $7)
on conflict (slug) do nothing
returning id;

-- name: updateLink :exec
update links.links
   set url = $2, title = $3, description = $4, visibility = $5, append_path = $6, updated_at = $7
 where id = $1;

-- name: removeLink :exec
-- Owners, shares, tags, changes and clicks go with it.
delete from links.links
 where id = $1;

-- name: takeLoopTurn :exec
-- Links to links are written one at a time.
select pg_advisory_xact_lock(7203002);

-- name: announceLinks :exec
-- Tells every instance, when the transaction commits, that what it knows of the slugs in the JSON array $1 is old.
select pg_notify('links_changed', slug)
  from jsonb_array_elements_text($1::jsonb) as slug;

-- name: writeTags :exec
-- Makes the JSON array $2 the tags of the link $1; $3 says whether the link is public.
with gone as (
  delete from links.link_tags
   where slug = $1
     and not $2::jsonb ? tag
)
insert into links.link_tags (slug, tag, is_public)
select $1, tag, $3
  from jsonb_array_elements_text($2::jsonb) as tag
on conflict (slug, tag) do update set is_public = excluded.is_public;

-- name: writeHiddenTags :exec
-- Makes what owners and recipients see of the tags of the links $1 (a JSON array of slugs) what it is by now: links
-- that are public have nothing hidden.
with members as (
  select user_id, slug from links.link_owners where slug in (select jsonb_array_elements_text($1::jsonb))
  union
  select user_id, slug from links.link_shares where slug in (select jsonb_array_elements_text($1::jsonb))
), wanted as (
  select m.user_id, t.tag, t.slug
    from members m
    join links.link_tags t on t.slug = m.slug and not t.is_public
), gone as (
  delete from links.hidden_tags h
   where h.slug in (select jsonb_array_elements_text($1::jsonb))
     and not exists (select from wanted w where w.user_id = h.user_id and w.tag = h.tag and w.slug = h.slug)
)
insert into links.hidden_tags (user_id, tag, slug)
select user_id, tag, slug
  from wanted
on conflict (user_id, tag, slug) do nothing;

-- name: countTags :exec
-- Adds the JSON array $1 of changes, sorted by tag, so that two writers lock the counters in one order.
insert into links.tags (tag, links, public_links)
select tag, links, public_links
  from jsonb_to_recordset($1::jsonb) as change(tag text, links bigint, public_links bigint)
 order by tag collate "C"
on conflict (tag) do update
   set links = links.tags.links + excluded.links, public_links = links.tags.public_links + excluded.public_links;

-- name: listTags :many
-- All tags in use, after tag $1, with the number of their links.
select tag as slug, links as link_count
  from links.tags
 where links > 0
   and tag > $1
 order by tag
 limit $2;

-- name: listVisibleTags :many
-- The tags of links that user $1 may see, after tag $2: public links are counted already, of the others only those are
-- looked at that the user may see.
with own as (
  select tag, count(*) as links
    from links.hidden_tags
   where user_id = $1
     and tag > $2
   group by tag
   order by tag
   limit $3
), open as (
  select tag, public_links
    from links.tags
   where public_links > 0
     and tag > $2
   order by tag
   limit $3
)
select coalesce(open.tag, own.tag) as slug, coalesce(open.public_links, 0) + coalesce(own.links, 0) as link_count
  from open
  full join own on own.tag = open.tag
 order by 1
 limit $3;

-- name: listTagLinks :many
-- All links with tag $1, after slug $2; looked up as in listOwnLinks.
with page as (
  select slug
    from links.link_tags
   where tag = $1
     and slug > $2
   order by slug
   limit $3
)
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at
  from page
 cross join lateral (
         select s.id, s.slug, s.url, s.title, s.description, s.tags, s.owners, s.visibility, s.append_path, s.created_at,
                s.updated_at
           from links.shown_links s
          where s.slug = page.slug
         offset 0
       ) l
 order by page.slug
 limit $3;

-- name: listVisibleTagLinks :many
-- The links with tag $1 that user $2 may see, after slug $3. What others keep to themselves is not even looked at, so
-- that a tag of theirs costs what a tag costs that does not exist: with `offset 0` also when it is known to be common.
with own as (
  select slug
    from links.hidden_tags
   where user_id = $2
     and tag = $1
     and slug > $3
   order by slug
   limit $4
), open as (
  select slug
    from links.link_tags
   where tag = $1
     and is_public
     and slug > $3
   order by slug
   limit $4
), visible as (
  (select slug from own union all select slug from open)
   order by slug
   limit $4
)
select l.id, l.slug, l.url, l.title, l.description, l.tags, l.owners, l.visibility, l.append_path, l.created_at,
       l.updated_at
  from visible
 cross join lateral (
         select s.id, s.slug, s.url, s.title, s.description, s.tags, s.owners, s.visibility, s.append_path, s.created_at,
                s.updated_at
           from links.shown_links s
          where s.slug = visible.slug
         offset 0
       ) l
 order by visible.slug
 limit $4;

-- name: listOwners :many
-- The owners of link $1, the primary one first.
select u.id, u.email, o.is_primary
  from links.links l
  join links.link_owners o on o.slug = l.slug
  join links.users u on u.id = o.user_id
 where l.id = $1
 order by o.is_primary desc, u.email;

-- name: addOwner :optional
-- Makes user $2 an owner of the link $1. Empty when the user is one already.
insert into links.link_owners (slug, user_id, is_primary)
values ($1, $2, $3)
on conflict (user_id, slug) do nothing
returning is_primary;

-- name: removeOwner :optional
-- Removes a co-owner $2 of the link $1, never the primary one. Empty when the user is no owner.
with found as (
  select user_id, slug, is_primary
    from links.link_owners
   where slug = $1
     and user_id = $2
), gone as (
  delete from links.link_owners
   where slug = $1
     and user_id = $2
     and not is_primary
)
select is_primary
  from found;

-- name: listShares :many
-- With whom link $1 is shared, by e-mail address.
select u.id, u.email, s.shared_by, s.created_at
  from links.links l
  join links.link_shares s on s.slug = l.slug
  join links.users u on u.id = s.user_id
 where l.id = $1
 order by u.email;

-- name: addShare :optional
-- Empty when the link $1 is shared with user $2 already.
insert into links.link_shares (slug, user_id, shared_by, created_at)
values ($1, $2, $3, $4)
on conflict (user_id, slug) do nothing
returning created_at;

-- name: removeShare :optional
-- Ends the share of link $1 with user $2. Empty when it is not shared with them.
delete from links.link_shares s
 using links.users u
 where s.slug = $1
   and s.user_id = $2
   and u.id = s.user_id
returning u.email;

-- name: saveChange :exec
-- Notes what $3 did to link $1 at $2.
insert into links.changes (link_id, at, actor, action, detail)
values ($1, $2, $3, $4, $5);

-- name: listChanges :many
-- What was done to link $1, newest first.
select id, at, actor, action, detail
  from links.changes
 where link_id = $1
 order by id desc
 limit $2;

-- name: findTarget :optional
-- What a visit needs of the link with slug $1. Empty when there is no such link.
select id, slug, url, visibility, append_path
  from links.links
 where slug = $1;

-- name: mayVisit :one
-- Whether user $2 is an owner of link $1, or it is shared with that user.
select exists (
         select from links.link_owners o join links.links l on l.slug = o.slug where l.id = $1 and o.user_id = $2)
       or exists (
         select from links.link_shares s join links.links l on l.slug = s.slug where l.id = $1 and s.user_id = $2)
       as may;

-- name: suggestLinks :many
-- Links that user $3 (null: nobody) may see, or an admin ($4): those whose slug is in the JSON array $1, then those
-- that begin with $2. Nothing that the visitor may not see takes a place among these, nor time.
with begun as (
  (select slug
     from links.links
    where $4::boolean
      and slug >= $2
      and slug < $2 || '{'
    order by slug
    limit 50)
  union all
  (select slug
     from links.links
    where visibility = 'public'
      and slug >= $2
      and slug < $2 || '{'
    order by slug
    limit 50)
  union all
  (select slug
     from links.link_owners
    where user_id = $3::uuid
      and slug >= $2
      and slug < $2 || '{'
    order by slug
    limit 50)
  union all
  (select slug
     from links.link_shares
    where user_id = $3::uuid
      and slug >= $2
      and slug < $2 || '{'
    order by slug
    limit 50)
), near as (
  select l.slug, 1 as rank
    from jsonb_array_elements_text($1::jsonb) as asked(slug)
    join links.links l on l.slug = asked.slug
   where l.visibility = 'public'
      or $4::boolean
      or exists (select from links.link_owners o where o.user_id = $3::uuid and o.slug = l.slug)
      or exists (select from links.link_shares s where s.user_id = $3::uuid and s.slug = l.slug)
  union all
  select slug, 2
    from begun
)
select l.slug, l.title
  from (select slug, min(rank) as rank from near group by slug) found
  join links.links l on l.slug = found.slug
 order by found.rank, length(l.slug), l.slug
 limit $5;

-- name: saveClicks :exec
-- Adds the JSON array $4 of clicks, unless it is a batch $2 that writer $1 has brought already, at $3. All writers lock in
-- one order; a link that is being removed is waited for, and one that is gone takes none.
with turn as (
  insert into links.click_writers (writer, batch, at)
  values ($1, $2, $3)
  on conflict (writer) do update set batch = excluded.batch, at = excluded.at
   where links.click_writers.batch < excluded.batch
  returning writer
), counted as (
  select c.link_id, c.day, c.kind, c.clicks
    from jsonb_to_recordset($4::jsonb) as c(link_id uuid, day date, kind text, clicks bigint)
), known as materialized (
  select l.id
    from links.links l
   where l.id in (select link_id from counted)
   order by l.id
     for key share
)
insert into links.clicks (link_id, day, kind, clicks)
select c.link_id, c.day, c.kind, c.clicks
  from counted c
  join known k on k.id = c.link_id
 where exists (select from turn)
 order by c.link_id, c.day, c.kind
on conflict (link_id, day, kind) do update set clicks = links.clicks.clicks + excluded.clicks;

-- name: forgetClickWriters :exec
-- Those who wrote nothing since $1: none of their batches is under way any more.
delete from links.click_writers
 where at < $1;

-- name: listClicks :many
-- The clicks on link $1 by day and kind, from day $2 (such as 2026-01-31) on.
select to_char(day, 'YYYY-MM-DD') as day, kind, clicks
  from links.clicks
 where link_id = $1
   and day >= $2::text::date
 order by day, kind
 limit $3;
