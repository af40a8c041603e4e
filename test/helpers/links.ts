import { createHash, randomBytes } from 'node:crypto'
import type { Test } from 'tap'
import { apiOf, type Api } from './api.ts'
import { postgres, type Backend, type Param } from './backends.ts'
import { runCli } from './cli.ts'
import { allIn, request, type RequestOptions, type Response } from './http.ts'
import type { Owner } from './owner.ts'
import { run } from './postgres.ts'
import type { Env } from './program.ts'
import { expectStatus, refuseAll, type Refusal } from './refusals.ts'
import { keepSecret } from './secrets.ts'
import { startServer, type TestServer } from './server.ts'

/** A links service on a database of its own. */
export type LinksServer = ReturnType<typeof linksServer>

/** A user who calls the API. */
export type Caller = {
  id: string
  email: string
  token: string
  api: Api
  /** What the API gives at a path, by GET. */
  read<T = Link>(path: string): Promise<T>
  /** Sends calls of the API, and expects their refusals and the state of before. */
  refused(t: Test, state: () => Promise<unknown>, refusals: readonly Refusal[]): Promise<void>
}

/** Somebody at a browser, as the trusted proxy names them; an empty address is anonymous. */
export type Visitor = {
  get(path: string, headers?: Headers): Promise<Response>
  /** Posts a form; text is sent as it is. */
  post(path: string, fields?: Headers | string, headers?: Headers): Promise<Response>
  /** The text of a page. */
  text(path: string, headers?: Headers): Promise<string>
}

/** A user who calls the API and visits the pages, where a proxy names them. */
export type PageUser = Caller & Visitor

/** Headers of a request. */
export type Headers = Readonly<Record<string, string>>

/** A link as the API shows it. */
export type Link = {
  id: string
  slug: string
  url: string
  title: string
  description: string
  tags: readonly string[]
  owners: readonly { id: string; email: string; is_primary: boolean }[]
  visibility: string
  append_path: boolean
  expires_at: string | null
  max_visits: number | null
  archived: boolean
  aliases: readonly string[]
  created_at: string
  updated_at: string
}

/** Starts `serve links` on a fresh database, or on the one that `env` names. */
export async function startLinks(t: Owner, backend: Backend, env: Env = {}) {
  const named = 'DATABASE_URL' in env || 'GATEHOUSE_DATA_DIR' in env
  const variables = { ...(named ? {} : await backend.env(t)), ...env }
  const server = await startServer(t, { services: ['links'], env: variables })
  return linksServer(server, variables)
}

/** The same behind a proxy on this machine that says who visits. */
export function startPages(t: Owner, backend: Backend, env: Env = {}) {
  return startLinks(t, backend, { GATEHOUSE_TRUSTED_PROXIES: '127.0.0.0/8', ...env })
}

/** Starts `serve links` on PostgreSQL, on a fresh database or on that of `env`. */
export function openLinks(t: Owner, env?: Env) {
  return startLinks(t, postgres, env)
}

/** The same behind a proxy on this machine that says who visits. */
export function openPages(t: Owner, env?: Env) {
  return startPages(t, postgres, env)
}

/** What `startLinks` gives, for a server that runs already. */
export function linksServer(server: TestServer, env: Env) {
  const base = server.links
  /** Calls the API with a token, or without one. */
  const api = (token?: string) => apiOf(base, token)
  const url = env['DATABASE_URL']

  async function command(...words: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await runCli(words, { env, secretShown: true })
    if (code !== 0) throw new Error(`gatehouse ${words.slice(0, 3).join(' ')}: ${stderr}`)
    return stdout.trim()
  }
  /** A further token of a user, as `gatehouse token create` makes it. */
  async function token(
    email: string,
    { scope = 'full' }: { scope?: 'full' | 'read' | 'create' } = {},
  ) {
    if (url !== undefined) return (await insertToken(url, { email, scope })).token
    return keepSecret('api-token', await command('token', 'create', email, '--scope', scope))
  }
  /** Makes a user with a token of scope `full`; the address is NAME@example.com. */
  async function user(name: string, { admin = false } = {}): Promise<PageUser> {
    const email = `${name}@example.com`
    const role = admin ? 'admin' : 'user'
    if (url === undefined) await command('user', 'add', email, ...(admin ? ['--admin'] : []))
    const made = await (url === undefined
      ? { token: await token(email) }
      : insertToken(url, { email, role }))
    const call = api(made.token)
    const read = async <T>(path: string) => (await call<T>('GET', path)).json
    const headers = { authorization: `Bearer ${made.token}` }
    return {
      ...visitorAt(base, email),
      id: 'id' in made ? made.id : (await read<{ id: string }>('/users/me')).id,
      email,
      token: made.token,
      api: call,
      read,
      refused: (t, state, refusals) =>
        refuseAll(t, { service: 'links', base: `${base}/api/v1`, headers, state }, refusals),
    }
  }
  /** Looks into its database, where that is on a server. */
  const query = (text: string, params?: readonly Param[]) => run(url ?? '', text, params)
  /** The value that a query of one row and column gives. */
  const value = async (text: string) => Object.values((await query(text))[0] ?? {})[0]
  /** Stores many links there (`insertLinks`). */
  const store = (links: readonly StoredLink[]) => insertLinks({ env }, postgres, links)
  return {
    server,
    base,
    /** Its variables: another server with the same ones shares its database (postgres) or follows it. */
    env,
    api,
    token,
    user,
    query,
    value,
    store,
  }
}

/**
 * Makes a link and gives it as it was made; throws when the API refuses. Co-owners and recipients, by their addresses,
 * are added after that.
 */
export async function makeLink(
  { api }: Pick<Caller, 'api'>,
  slug: string,
  { owners = [], shares = [], ...fields }: MadeLink = {},
) {
  const body = { slug, url: `https://${slug}.test/`, ...fields }
  const { json } = await expectStatus(201, api<Link>('POST', '/links', body))
  for (const [what, emails] of Object.entries({ owners, shares })) {
    for (const email of emails) {
      await expectStatus(201, api('POST', `/links/${json.id}/${what}`, { email }))
    }
  }
  return json
}

type MadeLink = Readonly<Record<string, unknown>> &
  Partial<Readonly<Record<'owners' | 'shares', readonly string[]>>>

/** As `gatehouse user add` and `token create`, in one statement: a test makes many. With a role the user is new. */
const MAKE_TOKEN = `
  with made as (
    insert into links.users (email, display_name, role, created_at)
    select $1, split_part($1, '@', 1), $2, now() where $2 <> '' returning id
  ), owner as (select id from made union all select id from links.users where email = $1)
  insert into links.tokens (user_id, name, scope, token_hash, created_at)
  select id, 'test', $3, $4, now() from owner returning user_id`

async function insertToken(
  url: string,
  { email, role = '', scope = 'full' }: { email: string; role?: string; scope?: string },
) {
  const digits = randomBytes(90).toString('base64').replaceAll(/[+/]/g, '').slice(0, 43)
  const token = keepSecret('api-token', `gh_${digits}`)
  const hash = createHash('sha256').update(token).digest()
  const [row] = await run(url, MAKE_TOKEN, [email, role, scope, hash])
  if (row === undefined) throw new Error(`there is no user ${email}`)
  return { id: String(row['user_id']), token }
}

/** A link as it is stored; people by their addresses, the primary owner first. */
type StoredLink = { slug: string } & Partial<
  Pick<Link, 'id' | 'url' | 'title' | 'visibility' | 'tags'> &
    Readonly<Record<'owners' | 'shares', readonly string[]>>
>

/** Stores many links at once, with all that is counted and copied for lists. Their users must be there. */
export async function insertLinks(
  { env }: Pick<LinksServer, 'env'>,
  backend: Backend,
  links: readonly StoredLink[],
) {
  const rows = JSON.stringify(links)
  for (const text of STORE) await backend.query(env, text, text.includes('$1') ? [rows] : [])
}

const GIVEN = `jsonb_to_recordset($1::text::jsonb) as g(slug text, id uuid, url text, title text, visibility text,
  tags text[], owners text[], shares text[])`
const STORE = [
  `insert into links.links (slug, id, url, title, description, visibility, append_path, created_at, updated_at)
   select slug, coalesce(id, gen_random_uuid()), coalesce(url, 'https://' || slug || '.test/'), coalesce(title, ''), '',
          coalesce(visibility, 'public'), false, now(), now() from ${GIVEN}`,
  `insert into links.names (name, link_id) select slug, l.id from ${GIVEN} join links.links l using (slug)`,
  `insert into links.link_owners (user_id, slug, is_primary)
   select u.id, g.slug, o.place = 1
     from ${GIVEN}, unnest(g.owners) with ordinality o(email, place) join links.users u using (email)`,
  `insert into links.link_shares (user_id, slug, shared_by, created_at)
   select u.id, g.slug, g.owners[1], now()
     from ${GIVEN}, unnest(g.shares) s(email) join links.users u using (email)`,
  `insert into links.link_tags (slug, tag, is_public)
   select g.slug, tag, coalesce(g.visibility, 'public') = 'public' from ${GIVEN}, unnest(g.tags) tag`,
  `insert into links.hidden_tags (user_id, tag, slug)
   select m.user_id, t.tag, t.slug
     from (select user_id, slug from links.link_owners union select user_id, slug from links.link_shares) m
     join links.link_tags t on t.slug = m.slug and not t.is_public
       on conflict do nothing`,
  `insert into links.link_words (slug, word, is_public)
   select distinct g.slug, word, coalesce(g.visibility, 'public') = 'public'
     from ${GIVEN}, regexp_split_to_table(lower(concat_ws(' ', g.slug, g.title)), '[^a-z0-9]+') word
    where length(word) > 1`,
  `insert into links.link_texts (slug, text, tags, readers)
   select g.slug, lower(concat_ws(' ', g.slug, l.title, l.url, array_to_string(g.tags, ' '), o.names)),
          coalesce(g.tags, '{}'), array(select user_id from links.link_owners where slug = g.slug
                                        union select user_id from links.link_shares where slug = g.slug
                                        union select links.everybody() where l.visibility = 'public')
     from ${GIVEN} join links.links l using (slug), lateral (
       select string_agg(concat_ws(' ', u.display_name, split_part(u.email, '@', 1)), ' ') as names
         from links.link_owners m join links.users u on u.id = m.user_id where m.slug = g.slug) o`,
  'delete from links.tags',
  `insert into links.tags (tag, links, public_links)
   select tag, count(*), count(*) filter (where is_public) from links.link_tags group by tag`,
]

/** What a browser without script sends when it goes to a page or posts a form. */
export const NAVIGATION: Headers = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }
/** What htmx sends. */
export const HTMX: Headers = { 'hx-request': 'true' }
/** How a person's browser names itself. */
export const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

/** Who visits with this e-mail address, and with these headers. */
export function visitorAt(base: string, email: string, more: Headers = {}): Visitor {
  const who = { ...identity(email), ...more }
  const type = { 'content-type': 'application/x-www-form-urlencoded' }
  const get: Visitor['get'] = (path, headers) =>
    request(base + path, { headers: { ...who, ...headers } })
  return {
    get,
    text: async (path, headers) => (await get(path, headers)).text,
    post(path, fields = {}, headers = {}) {
      const body = new URLSearchParams(fields).toString()
      return request(base + path, {
        method: 'POST',
        body: typeof fields === 'string' ? fields : body,
        headers: { ...who, ...type, ...headers },
      })
    },
  }
}

/** The header in which the proxy names somebody. */
export function identity(email: string) {
  return email === '' ? {} : { 'remote-email': email }
}

/** The slugs of the links that the API lists at a path. */
export async function slugsOf({ read }: Pick<Caller, 'read'>, path: string) {
  const { links } = await read<{ links: readonly Link[] }>(path)
  return links.map(({ slug }) => slug)
}

/** The slugs of the rows in a list, from top to bottom. */
export function slugsIn(text: string) {
  return allIn(text, /<tr [^>]*data-slug="([^"]*)"/g)
}

/** The address of the next page of the list whose table's body has this id; undefined on the last one. */
export function nextOf(text: string, rows: string) {
  const [, href] = new RegExp(`<a\\s+id="${rows}-more-link"\\s+href="([^"]*)"`).exec(text) ?? []
  return href?.replaceAll('&amp;', '&')
}

/** The slugs of all pages of a list, as its links lead through them; `rows` is the id of its table's body. */
export async function listedAll(
  who: Visitor,
  path: string,
  rows = 'links',
): Promise<readonly string[]> {
  const page = await expectStatus(200, who.get(path), path)
  const next = nextOf(page.text, rows)
  return [...slugsIn(page.text), ...(next === undefined ? [] : await listedAll(who, next, rows))]
}

/** A visit by a person: the path as it stands, nothing followed; further headers win. */
export function visit(
  base: string,
  path: string,
  options: RequestOptions = {},
): Promise<Response> {
  const headers = { 'user-agent': BROWSER, accept: 'text/html,*/*;q=0.8', ...options.headers }
  return request(base, { ...options, path, headers })
}

/** Where a visit leads, or the status of an answer that leads nowhere. */
export async function leadsTo(
  base: string,
  path: string,
  options?: RequestOptions,
): Promise<string | number> {
  const { status, headers } = await visit(base, path, options)
  return status === 302 ? (headers.location ?? 'no Location') : status
}

/** The slugs that a page suggests instead of the one that was asked for. */
export function suggested({ text }: Pick<Response, 'text'>) {
  const [list = ''] = /<ul class="suggestions">.*?<\/ul>/s.exec(text) ?? []
  return allIn(list, /href="\/([^"]*)"/g)
}

/** The url of a link whose address has as many bytes as a `Location` may have, and that address. */
export function longestTarget() {
  const start = 'https://far.test/aaa'
  const times = (8_192 - start.length) / 12
  return { url: start + '\u{1f680}'.repeat(times), location: start + '%F0%9F%9A%80'.repeat(times) }
}
