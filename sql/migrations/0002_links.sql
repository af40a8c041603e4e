-- Links: short links, who owns and sees them, and who followed them.

create schema links;

-- For searches by parts of words. An administrator may have created it, in another schema.
create extension if not exists pg_trgm with schema links;
select set_config('search_path', format('%I, public', n.nspname), true)
  from pg_extension e
  join pg_namespace n on n.oid = e.extnamespace
 where e.extname = 'pg_trgm';

-- Whether a user is a group that the trusted proxy names, as in `group:ops`. No address of a person has a colon.
create function links.is_group(email text)
returns boolean
language sql immutable parallel safe
return starts_with(email, 'group:');

-- Owners of links and tokens, and groups, which can be co-owners and recipients only. Users are never removed: links keep
-- their owners.
create table links.users (
  id           uuid             primary key default gen_random_uuid(),
  email        text collate "C" not null, -- of a person in lower case, so that each is one user
  display_name text             not null,
  role         text             not null default 'user' check (role in ('user', 'admin')),
  created_at   timestamptz(3)   not null,
  disabled_at  timestamptz(3), -- since then the user can't sign in, and tokens don't work; null: enabled
  constraint users_email unique (email),
  constraint users_groups check (not links.is_group(email) or role = 'user' and disabled_at is null)
);

-- A place in an order with the newest first: the milliseconds before the year 2100. What was never comes last, at the
-- greatest integer of JavaScript.
create function links.newest_first(at timestamptz)
returns bigint
language sql immutable parallel safe
return coalesce((extract(epoch from timestamptz '2100-01-01 00:00:00+00' - at) * 1000)::bigint, 9007199254740991);

-- The slug is the name of a link; other tables refer to it and follow a rename, and lists are ordered by it.
create table links.links (
  slug        text collate "C" primary key check (length(slug) between 2 and 64),
  id          uuid             not null default gen_random_uuid(),
  url         text             not null check (length(url) <= 8192),
  title       text             not null check (length(title) <= 200),
  description text             not null check (length(description) <= 2000),
  visibility  text             not null check (visibility in ('public', 'private', 'secure')),
  append_path boolean          not null, -- append further path segments of a visit to the url
  -- Visits end at this time, after this many clicks, and while the link is archived; null: never.
  expires_at  timestamptz(3),
  max_visits  bigint           check (max_visits > 0),
  archived    boolean          not null default false,
  is_checked  boolean          not null default true, -- false: the address is left out of the checks of addresses
  created_at  timestamptz(3)   not null,
  updated_at  timestamptz(3)   not null,
  -- All clicks of people and programs, for the order by clicks: `links.clicks` by day can't have an index that sorts links.
  -- It costs a second written row for each link that was clicked within a second.
  clicks      bigint           not null default 0,
  clicked_at  timestamptz(3), -- of the last of these clicks; null: never
  constraint links_id unique (id)
);
-- Lists, search and suggestions for people without links of their own.
create index links_public on links.links (slug) where visibility = 'public';
-- The other orders of lists. Each link is in four of these indexes, some 200 bytes in all.
create index links_public_by_clicks on links.links ((- clicks), slug) where visibility = 'public';
create index links_public_by_created on links.links (links.newest_first(created_at), slug) where visibility = 'public';
create index links_public_by_changed on links.links (links.newest_first(updated_at), slug) where visibility = 'public';
create index links_public_by_last_click on links.links (links.newest_first(clicked_at), slug) where visibility = 'public';
-- For admins, who see all links.
create index links_hidden_by_clicks on links.links ((- clicks), slug) where visibility <> 'public';
create index links_hidden_by_created on links.links (links.newest_first(created_at), slug) where visibility <> 'public';
create index links_hidden_by_changed on links.links (links.newest_first(updated_at), slug) where visibility <> 'public';
create index links_hidden_by_last_click on links.links (links.newest_first(clicked_at), slug) where visibility <> 'public';
-- For admins: links that nobody has used for long. A link that was never visited counts from its creation.
create index links_by_use on links.links (coalesce(clicked_at, created_at), slug);

-- All names under which links are visited: each link's slug, and its aliases. The key decides who of two gets a name. A
-- link's names are stored before the link itself, so the reference is checked when the transaction commits.
create table links.names (
  name    text collate "C" primary key check (length(name) between 2 and 64),
  link_id uuid             not null references links.links (id) on delete cascade deferrable initially deferred
);
create index names_by_link on links.names (link_id);
-- Dashes don't matter to a visit whose name no link has.
create index names_folded on links.names (replace(name, '-', ''));

-- The primary owner of a link, who can't be removed, and its co-owners.
create table links.link_owners (
  user_id    uuid             not null references links.users (id),
  slug       text collate "C" not null references links.links (slug) on delete cascade on update cascade,
  is_primary boolean          not null,
  primary key (user_id, slug)
);
create index link_owners_by_link on links.link_owners (slug);
create unique index link_owners_primary on links.link_owners (slug) where is_primary;

-- Users who may read a link that they don't own.
create table links.link_shares (
  user_id    uuid             not null references links.users (id),
  slug       text collate "C" not null references links.links (slug) on delete cascade on update cascade,
  shared_by  text             not null, -- e-mail address
  created_at timestamptz(3)   not null,
  primary key (user_id, slug)
);
create index link_shares_by_link on links.link_shares (slug);

create table links.link_tags (
  slug      text collate "C" not null references links.links (slug) on delete cascade on update cascade,
  tag       text collate "C" not null check (length(tag) between 1 and 50),
  is_public boolean          not null, -- copied from the link, so that a list by tag reads visible links only
  primary key (slug, tag)
);
create index link_tags_by_tag on links.link_tags (tag, slug);
create index link_tags_public on links.link_tags (tag, slug) where is_public;

-- The tags of links that are not public, for each owner and recipient: a list by tag reads these.
create table links.hidden_tags (
  user_id uuid             not null references links.users (id),
  tag     text collate "C" not null,
  slug    text collate "C" not null,
  primary key (user_id, tag, slug),
  foreign key (slug, tag) references links.link_tags (slug, tag) on delete cascade on update cascade
);
create index hidden_tags_by_link on links.hidden_tags (slug, tag);

-- Number of links per tag, for the list of tags.
create table links.tags (
  tag          text collate "C" primary key,
  links        bigint           not null,
  public_links bigint           not null
) with (fillfactor = 50);
-- Lists of visible tags skip tags that only other users see.
create index tags_public on links.tags (tag) where public_links > 0;

-- The words of slugs, aliases and titles, for what a visitor may have meant by an unknown slug. Strangers ask for these, and this
-- index stops after the first 200 links with a word; that of links.link_texts would first collect all of them. Costs
-- some 100 bytes a word.
create table links.link_words (
  slug      text collate "C" not null references links.links (slug) on delete cascade on update cascade,
  word      text collate "C" not null check (length(word) <= 64),
  is_public boolean          not null, -- copied from the link, like that of link_tags
  primary key (slug, word)
);
create index link_words_public on links.link_words (word, slug) where is_public;
create index link_words_hidden on links.link_words (word, slug) where not is_public;

-- What a search compares with, in lower case: slug, aliases, title, url, description and tags, and each owner's name and address up
-- to its @. A table of its own, because each click writes a new version of the link's row. Kept by lists.sql: writeTexts.
create table links.link_texts (
  slug    text collate "C" primary key references links.links (slug) on delete cascade on update cascade,
  text    text collate "C"   not null,
  tags    text[] collate "C" not null,
  readers uuid[]             not null, -- who may find it: owners and recipients, and links.everybody() if it is public
  -- What filters look up: a hash of the address, `archived`, `expires` (it has an expiry), `used_up` (all its visits are
  -- made), and links.clicks_keys().
  keys    text[] collate "C" not null default '{}'
);
-- A search reads entries of links only that its user may see: `readers` is in the index. Without fastupdate, which saves
-- a writer the sorting of entries: now and then one would have to sort thousands, and each search reads those left.
create index link_texts_search on links.link_texts using gin (readers, tags, keys, text gin_trgm_ops) with (fastupdate = off);

-- The keys that a link gets in links.link_texts when its clicks rise from `before` to `now`: a search in the order of clicks
-- looks up links with many clicks first. Writing a key takes a millisecond, and a link gets three at most.
create function links.clicks_keys(before bigint, now bigint)
returns text[]
language sql immutable parallel safe
return array_remove(array[case when before < 100 and now >= 100 then 'clicks:100' end,
                          case when before < 1000 and now >= 1000 then 'clicks:1000' end,
                          case when before < 10000 and now >= 10000 then 'clicks:10000' end], null);

-- Stands for all users among the readers of a link.
create function links.everybody()
returns uuid
language sql immutable parallel safe
return uuid '00000000-0000-0000-0000-000000000000';

-- Whether the address of a link may be checked: http and https alone. A url with places is not an address yet, and the server must not follow a
-- secure link for anybody. `is_checked` is the choice of the link's owners.
create function links.is_checkable(link links.links)
returns boolean
language sql immutable parallel safe
return link.is_checked and link.visibility <> 'secure' and not link.archived and link.url ~* '^https?:' and link.url !~ '[{]([1-9*]|user)(:[^{}]*)?[}]';

-- What the checks of addresses have found. A link gets a row some time after it is there; a row of another `url` than the
-- link's says nothing about the link.
create table links.health (
  slug          text collate "C" primary key references links.links (slug) on delete cascade on update cascade,
  url           text             not null,
  host          text collate "C" not null,
  due_at        timestamptz(3)   not null,
  state         text collate "C" not null default 'unchecked' check (state in ('unchecked', 'ok', 'unknown', 'broken')),
  since         timestamptz(3), -- of the state; null while unchecked
  checked_at    timestamptz(3),
  status        integer,
  problem       text,
  missing_since timestamptz(3)  -- the first of the checks in a row that found no page or no host
);
create index health_due on links.health (due_at);
create index health_by_state on links.health (state, slug);

-- Hosts that were asked lately: each is asked again from `free_at` on, by one instance at a time.
create table links.check_hosts (
  host    text collate "C" primary key,
  free_at timestamptz(3)   not null
);

-- Slugs without a link that visitors asked for: some of each day (UTC).
create table links.missing_slugs (
  day    date             not null,
  slug   text collate "C" not null,
  visits bigint           not null,
  primary key (day, slug)
);

-- The history of a link. Retention keeps the newest changes of each link.
create table links.changes (
  id      bigint         generated always as identity primary key,
  link_id uuid           not null references links.links (id) on delete cascade,
  at      timestamptz(3) not null,
  actor   text           not null, -- e-mail address
  action  text           not null,
  detail  jsonb          not null -- each changed field with its values before and after
);
create index changes_by_link on links.changes (link_id, id desc);

-- Deleted links with all their rows as JSON, for as long as they can be restored. The newest has the highest number.
create table links.deleted_links (
  deletion   bigint           generated always as identity primary key,
  id         uuid             not null,
  slug       text collate "C" not null, -- another link may have it
  deleted_at timestamptz(3)   not null,
  deleted_by text             not null, -- e-mail address
  link       jsonb            not null,
  aliases    jsonb            not null,
  shares     jsonb            not null,
  tags       jsonb            not null,
  changes    jsonb            not null, -- the newest ones
  clicks     jsonb            not null,
  sources    jsonb            not null,
  constraint deleted_links_id unique (id)
);
-- For retention.
create index deleted_links_by_time on links.deleted_links (deleted_at);

-- The owners of deleted links, who may restore them.
create table links.deleted_owners (
  user_id    uuid    not null references links.users (id),
  deletion   bigint  not null references links.deleted_links (deletion) on delete cascade,
  is_primary boolean not null,
  primary key (user_id, deletion)
);
create index deleted_owners_by_link on links.deleted_owners (deletion);

create table links.tokens (
  id           uuid           primary key default gen_random_uuid(),
  user_id      uuid           not null references links.users (id),
  name         text           not null check (length(name) between 1 and 100),
  scope        text           not null check (scope in ('full', 'read', 'create')),
  token_hash   bytea          not null check (length(token_hash) = 32), -- SHA-256; the token is never stored
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3),
  last_used_at timestamptz(3),
  constraint tokens_hash unique (token_hash)
);
create index tokens_by_user on links.tokens (user_id, created_at desc);

-- Visits per link and day (UTC), for three years. No visitor's address is stored.
create table links.clicks (
  link_id uuid             not null references links.links (id) on delete cascade,
  day     date             not null,
  kind    text collate "C" not null check (kind in ('human', 'bot', 'preview')),
  clicks  bigint           not null,
  primary key (link_id, day, kind)
) with (fillfactor = 70);
-- For retention.
create index clicks_by_day on links.clicks (day);

-- Where the visits of a link on a day came from, and with what: numbers by the hosts of referrers, and by kinds of
-- clients. One row has all of a day; retention merges the days of a month into the row of its first day.
create table links.click_sources (
  link_id   uuid  not null references links.links (id) on delete cascade,
  day       date  not null,
  referrers jsonb not null,
  clients   jsonb not null,
  primary key (link_id, day)
) with (fillfactor = 70);
-- For retention.
create index click_sources_by_day on links.click_sources (day);
create index click_sources_to_merge on links.click_sources (day) where extract(day from day) <> 1;

-- Adds two objects of numbers by name. At most `most` names of the result are kept, those of `counts` first; what is
-- beyond them counts as `other`.
create function links.add_counts(counts jsonb, more jsonb, most integer)
returns jsonb
language sql immutable parallel safe
return (
  select jsonb_object_agg(kept.name, kept.number)
    from (select case when ranked.place <= most then ranked.name else 'other' end as name, sum(ranked.number) as number
            from (select given.name, sum(given.number) as number,
                         row_number() over (order by given.name = 'other', min(given.origin), sum(given.number) desc,
                                                     given.name) as place
                    from (select key as name, value::bigint as number, 1 as origin from jsonb_each_text(counts)
                          union all
                          select key, value::bigint, 2 from jsonb_each_text(more)) given
                   group by given.name) ranked
           group by 1) kept);

-- The last batch of clicks of each process. If an acknowledgement is lost, the batch is sent again
-- with the same number, and counts once.
create table links.click_writers (
  writer uuid           primary key,
  batch  bigint         not null,
  at     timestamptz(3) not null
);

-- Links with their tags and owners, as the API describes them.
create view links.shown_links as
select l.id, l.slug, l.url, l.title, l.description,
       (select coalesce(jsonb_agg(t.tag order by t.tag), '[]'::jsonb)
          from links.link_tags t
         where t.slug = l.slug) as tags,
       (select jsonb_agg(jsonb_build_object('id', u.id, 'email', u.email, 'is_primary', o.is_primary)
                         order by o.is_primary desc, u.email)
          from links.link_owners o
         -- "offset 0" keeps the lookup of each owner by id, also while the table has no statistics.
         cross join lateral (select id, email from links.users where id = o.user_id offset 0) u
         where o.slug = l.slug) as owners,
       l.visibility, l.append_path, l.expires_at, l.max_visits, l.archived,
       (select coalesce(jsonb_agg(n.name order by n.name), '[]'::jsonb)
          from links.names n
         where n.link_id = l.id and n.name <> l.slug) as aliases,
       l.created_at, l.updated_at
  from links.links l;

-- The part of a list (links.slugs_in_list) that its members, a user and groups, own or were given to read: of each member
-- the first `most` slugs. Each is looked up by an index: a scan of a table would read links of others, and its time tell
-- of them.
create function links.slugs_of(list text, members uuid[], with_tag text, after text, until text, most bigint)
returns table (slug text)
language plpgsql stable rows 100
set enable_seqscan = off
as $$
begin
  return query
  select own.slug
    from unnest(members) member
   cross join lateral (
         select o.slug
           from links.link_owners o
          where (list not in ('primary', 'co') or o.is_primary = (list = 'primary'))
            and o.user_id = member
            and o.slug > after
            and o.slug <= until
          order by o.slug
          limit most) own
   where list in ('mine', 'owned', 'primary', 'co') or list = 'visible' and with_tag = ''
  union
  select given.slug
    from unnest(members) member
   cross join lateral (
         select s.slug
           from links.link_shares s
          where s.user_id = member
            and s.slug > after
            and s.slug <= until
          order by s.slug
          limit most) given
   where list in ('mine', 'shared') or list = 'visible' and with_tag = ''
  union
  select hidden.slug
    from unnest(members) member
   cross join lateral (
         select h.slug
           from links.hidden_tags h
          where h.user_id = member
            and h.tag = with_tag
            and h.slug > after
            and h.slug <= until
          order by h.slug
          limit most) hidden
   where list = 'visible' and with_tag <> '';
end;
$$;

-- Slugs of a list, unordered: at least the first `most` (null: all) after `after`, up to `until`. The lists of the `members`,
-- a user and groups, are `primary`, `co`, `shared`, `owned` (primary and co) and `mine` (all three); `visible` has these and
-- public links, `every` has all links. `visible` and `every` have only links with the tag `with_tag`, unless it is ''.
-- Each branch reads links of the list only, and none where it is not of this list: neither a slug nor the time of a query
-- tells about links that the user may not see.
create function links.slugs_in_list(list text, members uuid[], with_tag text, after text, until text, most bigint)
returns table (slug text)
language sql stable
as $$
  (select m.slug
     from links.slugs_of(list, members, with_tag, after, until, most) m
    where list <> 'every'
      and members <> '{}')
  union
  (select l.slug
     from links.links l
    where list = 'visible'
      and with_tag = ''
      and l.visibility = 'public'
      and l.slug > after
      and l.slug <= until
    order by l.slug
    limit most)
  union
  (select t.slug
     from links.link_tags t
    where list = 'visible'
      and t.tag = with_tag
      and t.is_public
      and t.slug > after
      and t.slug <= until
    order by t.slug
    limit most)
  union
  (select l.slug
     from links.links l
    where list = 'every'
      and with_tag = ''
      and l.slug > after
      and l.slug <= until
    order by l.slug
    limit most)
  union
  (select t.slug
     from links.link_tags t
    where list = 'every'
      and t.tag = with_tag
      and t.slug > after
      and t.slug <= until
    order by t.slug
    limit most)
$$;

-- The place of a link in an order of lists; 0 in that of slugs.
create function links.place_in_order(sort text, clicks bigint, created_at timestamptz, updated_at timestamptz,
                                     clicked_at timestamptz)
returns bigint
language sql immutable parallel safe
return case sort
         when 'clicks' then - clicks
         when 'created' then links.newest_first(created_at)
         when 'changed' then links.newest_first(updated_at)
         when 'last_click' then links.newest_first(clicked_at)
         else 0
       end;

-- Whether visits of a link have ended at a time, and why.
create function links.state_at(at timestamptz, archived boolean, expires_at timestamptz, max_visits bigint, clicks bigint)
returns text
language sql immutable parallel safe
return case
         when archived then 'archived'
         when expires_at <= at then 'expired'
         when clicks >= max_visits then 'used_up'
         else 'active'
       end;

-- A list in another order than that of slugs: the first `most` rows after the place `place_after` and the slug `after`.
-- `sort` is `clicks`, `created`, `changed` or `last_click`. Public links, and all links for admins, are read from the indexes
-- of the order: the plan is made for the order at hand, so that PostgreSQL sees which ones. All links that a user owns or
-- was given are read and sorted.
create function links.slugs_in_order(list text, members uuid[], sort text, place_after bigint, after text, most bigint)
returns table (place bigint, slug text)
language plpgsql stable
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  (select links.place_in_order(sort, l.clicks, l.created_at, l.updated_at, l.clicked_at) as at, l.slug
     from links.links l
    where list in ('visible', 'every')
      and l.visibility = 'public'
      and (links.place_in_order(sort, l.clicks, l.created_at, l.updated_at, l.clicked_at), l.slug) > (place_after, after)
    order by 1, 2
    limit most)
  union all
  (select links.place_in_order(sort, l.clicks, l.created_at, l.updated_at, l.clicked_at), l.slug
     from links.links l
    where list = 'every'
      and l.visibility <> 'public'
      and (links.place_in_order(sort, l.clicks, l.created_at, l.updated_at, l.clicked_at), l.slug) > (place_after, after)
    order by 1, 2
    limit most)
  union all
  (select own.at, own.slug
     from (select links.place_in_order(sort, l.clicks, l.created_at, l.updated_at, l.clicked_at) as at, l.slug
             from links.slugs_in_list(case list when 'visible' then 'mine' else list end, members, '', '', '{', null) m
            cross join lateral (
                   select l.slug, l.visibility, l.clicks, l.created_at, l.updated_at, l.clicked_at
                     from links.links l where l.slug = m.slug offset 0) l
            where list <> 'every'
              and (list <> 'visible' or l.visibility <> 'public')) own
    where (own.at, own.slug) > (place_after, after)
    order by 1, 2
    limit most)
  order by 1, 2
  limit most;
end;
$$;

-- A list as its pages show it, after the place `place_after` and the slug `after`; the order of slugs has the places 0 and
-- 1: slugs that begin with `beginning` come first. `start` sorts before them and after all smaller slugs.
create function links.sorted_slugs(list text, members uuid[], with_tag text, sort text, beginning text, start text,
                                   place_after bigint, after text, most bigint)
returns table (place bigint, slug text)
language sql stable
as $$
  select 0::bigint, s.slug
    from links.slugs_in_list(list, members, with_tag, case place_after when 0 then after else start end,
                             beginning || '{', most) s
   where sort = 'slug'
     and place_after < 1
  union all
  select 1::bigint, s.slug
    from links.slugs_in_list(list, members, with_tag, case place_after when 1 then after else '' end, '{', most) s
   where sort = 'slug'
     and beginning <> ''
     and not starts_with(s.slug, beginning)
  union all
  select o.place, o.slug
    from links.slugs_in_order(list, members, sort, place_after, after, most) o
   where sort <> 'slug'
$$;

-- Links whose text matches all `patterns`, with all tags of `with_tags` and keys of `with_keys`, that one of `finders` may
-- find. `owner` and one of `owners` may find them as well. Either one of `addressed` may find them, or the text matches
-- `address`. Null filters nothing. Three patterns are looked up in the index, the others compared. The plan is made for
-- the patterns at hand, and never reads the whole table, so that the time tells nothing about links of others.
create function links.links_matching(finders uuid[], with_tags text[], with_keys text[], patterns text[], owner uuid,
                                     owners uuid[], addressed uuid[], address text)
returns table (slug text)
language plpgsql stable
set enable_seqscan = off
set plan_cache_mode = force_custom_plan
as $$
begin
  return query
  select t.slug
    from links.link_texts t
   where (finders is null or t.readers && finders)
     and (with_tags = '{}' or t.tags @> with_tags)
     and (with_keys = '{}' or t.keys @> with_keys)
     and (patterns[1] is null or t.text like patterns[1])
     and (patterns[2] is null or t.text like patterns[2])
     and (patterns[3] is null or t.text like patterns[3])
     and t.text like all (patterns)
     and (owner is null or t.readers @> array[owner])
     and (owners is null or t.readers && owners)
     and (address is null or t.text like address or t.readers && addressed);
end
$$;
