import { run } from '../../test/helpers/postgres.ts'

/** The owner of every tenth link. */
export const BIG_OWNER = 'u0@example.com'
/** The owner of three links in a hundred. */
export const LARGE_OWNER = 'u1@example.com'
/** The tag of three links in ten. */
export const POPULAR = 'popular'

/**
 * Statements that make `count` links as a large company would have them, none of which is in the order of
 * its slug in the table: 2,000 users, of whom one owns a tenth of all links; a co-owner for a fifth and
 * a share for a tenth of the links; seven in ten public, two private, one secure; a popular tag, and
 * another one of `count / 50` on each link. One link in a hundred shares its address with a hundred others, one in fifty
 * is archived, one in twenty has an expiry, and four in ten were never clicked.
 */
function seed(count: number): readonly string[] {
  return [
    `insert into links.users (email, display_name, role, created_at)
     select 'u' || n || '@example.com', 'User ' || n, 'user', now() from generate_series(0, 1999) n`,
    `create temporary table made as
     select n, substr(md5(n::text), 1, 8) || '-' || n as slug, hashint4(n) & 2147483647 as h
       from generate_series(1, ${count}) n`,
    `insert into links.links (slug, url, title, description, visibility, append_path, expires_at, max_visits, archived,
                              created_at, updated_at, clicks, clicked_at)
     select slug, 'https://intranet.example.com/' || case h / 29 % 100 when 0 then 'shared/' || h / 43 % 100 else slug end,
            'Title of ' || slug, repeat('words ', 10),
            case when h % 10 < 7 then 'public' when h % 10 < 9 then 'private' else 'secure' end, false,
            case when h / 37 % 20 = 0 then now() + make_interval(days => h / 47 % 200 - 100) end,
            case when h / 41 % 50 = 0 then 1000 end, h / 31 % 50 = 0,
            now() - make_interval(mins => h / 7 % 1500000), now() - make_interval(mins => h / 7 % 1500000 / 2),
            clicks, case when clicks > 0 then now() - make_interval(mins => h / 23 % 500000) end
       from (select *, case when h / 17 % 10 < 4 then 0 else 1000000 / (1 + h / 19 % 20000) end as clicks from made) m`,
    'insert into links.names (name, link_id) select slug, id from links.links',
    `create temporary table people as
     select id, substr(email, 2, position('@' in email) - 2)::int as u from links.users where email ~ '^u[0-9]+@'`,
    'analyze made',
    'analyze people',
    `insert into links.link_owners (user_id, slug, is_primary)
     select p.id, m.slug, true
       from made m join people p on p.u = case
              when n % 10 = 0 then 0 when n % 100 in (1, 2, 3) then 1 else 2 + h / 10 % 1998 end`,
    `insert into links.link_owners (user_id, slug, is_primary)
     select p.id, m.slug, false from made m join people p on p.u = 1 + h / 7 % 1999 where n % 5 = 1
         on conflict do nothing`,
    `insert into links.link_shares (user_id, slug, shared_by, created_at)
     select p.id, m.slug, 'u1@example.com', now()
       from made m join people p on p.u = h / 13 % 2000 where n % 10 = 2`,
    `insert into links.link_tags (slug, tag, is_public)
     select slug, tag, h % 10 < 7
       from made, lateral (values ('tag-' || h / 3 % ${Math.max(1, Math.round(count / 50))}),
                                  (case when h / 11 % 10 < 3 then '${POPULAR}' end)) as tags (tag)
      where tag is not null`,
    `insert into links.hidden_tags (user_id, tag, slug)
     select m.user_id, t.tag, t.slug
       from (select user_id, slug from links.link_owners union select user_id, slug from links.link_shares) m
       join links.link_tags t on t.slug = m.slug and not t.is_public`,
    `insert into links.link_words (slug, word, is_public)
     select slug, word, h % 10 < 7
       from made, unnest(array[substr(slug, 1, 8), n::text, 'title', 'of']) word
         on conflict do nothing`,
    ...['links', 'link_owners', 'link_shares', 'link_tags', 'users'].map(
      (name) => `analyze links.${name}`,
    ),
    // Built at once, the index of parts takes a tenth of the time.
    'drop index links.link_texts_search',
    `insert into links.link_texts (slug, text, tags, readers, keys)
     select l.slug, lower(concat_ws(' ', l.slug, l.title, l.url, l.description, t.words, o.names)), t.tags,
            o.ids || array(select user_id from links.link_shares s where s.slug = l.slug)
                  || array(select links.everybody() where l.visibility = 'public'),
            array_remove(array['url:' || left(encode(sha256(convert_to(l.url, 'UTF8')), 'hex'), 32),
                               case when l.archived then 'archived' end, case when l.expires_at is not null then 'expires' end,
                               case when l.clicks >= l.max_visits then 'used_up' end], null)
              || links.clicks_keys(0, l.clicks)
       from links.links l
      cross join lateral (
             select string_agg(tag, ' ') as words, array_agg(tag::text) as tags from links.link_tags where slug = l.slug) t
      cross join lateral (
             select string_agg(concat_ws(' ', u.display_name, split_part(u.email, '@', 1)), ' ') as names, array_agg(u.id) as ids
               from links.link_owners m join links.users u on u.id = m.user_id where m.slug = l.slug) o`,
    `create index link_texts_search on links.link_texts
      using gin (readers, tags, keys, text links.gin_trgm_ops) with (fastupdate = off)`,
    `insert into links.tags (tag, links, public_links)
     select tag, count(*), count(*) filter (where is_public) from links.link_tags group by tag`,
  ]
}

/** Fills a migrated database with `count` links, as fast as it can. */
export async function seedLinks(url: string, count: number): Promise<void> {
  await run(url, seed(count).join(';\n'))
  await run(url, 'vacuum analyze')
}
