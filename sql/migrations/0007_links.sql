create schema links;

create table links.users (
  id           uuid             primary key default gen_random_uuid(),
  email        text collate "C" not null,
  display_name text             not null,
  role         text             not null default 'user' check (role in ('user', 'admin')),
  created_at   timestamptz(3)   not null,
  constraint users_email unique (email)
);
comment on table links.users is 'Who owns links and tokens. Nobody is removed: links keep their owners.';
comment on column links.users.email is 'In lower case: two spellings are one person.';

create table links.links (
  slug        text collate "C" primary key check (length(slug) between 2 and 64),
  id          uuid             not null default gen_random_uuid(),
  url         text             not null check (length(url) <= 2048),
  title       text             not null check (length(title) <= 200),
  description text             not null check (length(description) <= 2000),
  visibility  text             not null check (visibility in ('public', 'private', 'secure')),
  append_path boolean          not null,
  created_at  timestamptz(3)   not null,
  updated_at  timestamptz(3)   not null,
  constraint links_id unique (id)
);
comment on table links.links is 'Short links. A slug never changes, so it is the key that the other tables refer to and lists go by.';
comment on column links.links.append_path is 'Whether further path segments of a visit are appended to the url.';

create table links.link_owners (
  user_id    uuid             not null references links.users (id),
  slug       text collate "C" not null references links.links (slug) on delete cascade,
  is_primary boolean          not null,
  primary key (user_id, slug)
);
comment on table links.link_owners is 'The primary owner of a link, who can''t be removed, and its co-owners.';
create index link_owners_by_link on links.link_owners (slug);
create unique index link_owners_primary on links.link_owners (slug) where is_primary;

create table links.link_shares (
  user_id    uuid             not null references links.users (id),
  slug       text collate "C" not null references links.links (slug) on delete cascade,
  shared_by  text             not null,
  created_at timestamptz(3)   not null,
  primary key (user_id, slug)
);
comment on table links.link_shares is 'Who may read a link, beside its owners.';
comment on column links.link_shares.shared_by is 'E-mail address of who shared it.';
create index link_shares_by_link on links.link_shares (slug);

create table links.link_tags (
  slug      text collate "C" not null references links.links (slug) on delete cascade,
  tag       text collate "C" not null check (length(tag) between 1 and 50),
  is_public boolean          not null,
  primary key (slug, tag)
);
comment on column links.link_tags.is_public is 'Whether the link is public: so that a listing by tag looks only at what may be seen.';
create index link_tags_by_tag on links.link_tags (tag, slug);
create index link_tags_public on links.link_tags (tag, slug) where is_public;

create table links.hidden_tags (
  user_id uuid             not null references links.users (id),
  tag     text collate "C" not null,
  slug    text collate "C" not null,
  primary key (user_id, tag, slug),
  foreign key (slug, tag) references links.link_tags (slug, tag) on delete cascade
);
comment on table links.hidden_tags is 'The tags of links that are not public, for each owner and recipient: a listing by tag looks at nothing else.';
create index hidden_tags_by_link on links.hidden_tags (slug, tag);

create table links.tags (
  tag          text collate "C" primary key,
  links        bigint           not null,
  public_links bigint           not null
) with (fillfactor = 50);
comment on table links.tags is 'How many links have a tag, all and public ones: what the list of tags counts instead of links.';
create index tags_public on links.tags (tag) where public_links > 0;
comment on index links.tags_public is 'So that a list of visible tags does not pass by those that only others see.';

create table links.changes (
  id      bigint         generated always as identity primary key,
  link_id uuid           not null references links.links (id) on delete cascade,
  at      timestamptz(3) not null,
  actor   text           not null,
  action  text           not null,
  detail  jsonb          not null
);
comment on table links.changes is 'What was done to a link and by whom (e-mail address); it goes with the link.';
comment on column links.changes.detail is 'Name of each field that changed, with its values before and after.';
create index changes_by_link on links.changes (link_id, id desc);

create table links.tokens (
  id           uuid           primary key default gen_random_uuid(),
  user_id      uuid           not null references links.users (id),
  name         text           not null check (length(name) between 1 and 100),
  scope        text           not null check (scope in ('full', 'read', 'create')),
  token_hash   bytea          not null check (length(token_hash) = 32),
  created_at   timestamptz(3) not null,
  expires_at   timestamptz(3),
  last_used_at timestamptz(3),
  constraint tokens_hash unique (token_hash)
);
comment on column links.tokens.token_hash is 'SHA-256 of the token; the token itself is shown once and never stored.';
create index tokens_by_user on links.tokens (user_id, created_at desc);

create table links.clicks (
  link_id uuid   not null references links.links (id) on delete cascade,
  day     date   not null,
  kind    text   not null check (kind in ('human', 'bot', 'preview')),
  clicks  bigint not null,
  primary key (link_id, day, kind)
) with (fillfactor = 70);
comment on table links.clicks is 'Visits per link and day (UTC). No address of a visitor is stored.';

create view links.shown_links as
select l.slug, l.id, l.url, l.title, l.description, l.visibility, l.append_path, l.created_at, l.updated_at,
       (select coalesce(jsonb_agg(t.tag order by t.tag), '[]'::jsonb)
          from links.link_tags t
         where t.slug = l.slug) as tags,
       (select jsonb_agg(jsonb_build_object('id', u.id, 'email', u.email, 'is_primary', o.is_primary)
                         order by o.is_primary desc, u.email)
          from links.link_owners o
         -- One by one, also before there are statistics of who owns how much.
         cross join lateral (select id, email from links.users where id = o.user_id offset 0) u
         where o.slug = l.slug) as owners
  from links.links l;
comment on view links.shown_links is 'Links with their tags and owners, as the API shows them.';
