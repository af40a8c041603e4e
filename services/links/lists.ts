import Type from 'typebox'
import type { Database } from '../../db/client.ts'
import { listQueries as q, type ListedLink, type ListScope } from '../../db/links/lists.ts'
import type { User } from '../../db/links/users.ts'
import { decodeCursor } from '../../kernel/text.ts'
import type { Clock } from '../../kernel/time.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import { firstClickDay } from './clicks.ts'
import { foldTag, partsOf } from './link-input.ts'
import { beforeSlugs } from './slug.ts'

const MAX_TEXT = 200

const text = parsed(
  withDefault(Type.String({ maxLength: MAX_TEXT }), ''),
  `may have ${MAX_TEXT} characters at most, and no NUL`,
  (given) => {
    const trimmed = String(given).trim()
    return trimmed.length <= MAX_TEXT && !trimmed.includes('\0') ? trimmed : undefined
  },
)

/** What the filter of a list holds; '' filters nothing. */
const filterFields = {
  q: text,
  tag: text,
  visibility: field(withDefault(Type.Enum(['', 'public', 'private', 'secure']), ''), {
    code: 'INVALID_VISIBILITY',
    text: 'must be public, private or secure',
  }),
  role: field(
    withDefault(Type.Enum(['', 'owner', 'co-owner', 'recipient']), ''),
    'must be owner, co-owner or recipient',
  ),
}
export const ListFilter = Type.Object(filterFields)
type ListFilter = Type.Static<typeof ListFilter>

/** The query of a list: its filter, and where the page begins. */
export const ListQuery = Type.Object({
  ...filterFields,
  cursor: parsed(
    Type.Optional(Type.Unsafe<ListPosition>({ type: 'string' })),
    'is not from this list; start again from the first page',
    (given): ListPosition | undefined => {
      const [part, after] = decodeCursor(String(given)) ?? []
      // The database takes no NUL, so none of our cursors has one.
      if (typeof after !== 'string' || after.includes('\0')) return undefined
      return part === 'prefix' || part === 'rest' ? { part, after } : undefined
    },
  ),
})

/** What is searched for: among the visitor's own links, or among all that the visitor may see. */
export interface LinkSearch {
  filter: ListFilter
  visitor: User
  among: 'mine' | 'all'
}

/** How far a list was read: among slugs that begin with the text (`prefix`), or among the rest. */
export interface ListPosition {
  part: 'prefix' | 'rest'
  after: string
}

export interface LinksPage {
  links: readonly ListedLink[]
  /** Where the next page begins; null on the last page. */
  next: ListPosition | null
  /** The last slug that was examined before the time was up; null when the page is complete. */
  searchedTo: string | null
}

const ROLES = { '': 'mine', owner: 'primary', 'co-owner': 'co', recipient: 'shared' } as const
const MAX_TEXTS = 8
/** Links that one query examines, and how long a page may search. */
const WINDOW = 2_000
const SEARCH_MS = 1_500
/** Comes after all characters of slugs. */
const LAST = '{'
const REST: ListPosition = { part: 'rest', after: '' }

/** The part of a list that is asked for: at most `limit` rows whose key comes after `after`. */
export interface Slice {
  after: string
  limit: number
}

/** The links of a user, or of everybody for admins: the API's list (links.md section 4). */
export function listLinks(db: Database, caller: User, slice: Slice) {
  const list = caller.role === 'admin' ? 'every' : 'owned'
  return q.listLinks(db, { list, user: caller.id, tag: '', ...slice })
}

/**
 * All links whose slug begins with a text, or those that a user is the primary owner of; every link
 * when the text is empty.
 */
export async function listAllLinks(
  db: Database,
  { prefix = '', owner }: { prefix?: string; owner?: User | undefined },
  slice: Slice,
) {
  if (!/^[a-z0-9-]*$/.test(prefix)) return []
  const start = beforeSlugs(prefix)
  const after = slice.after > start ? slice.after : start
  const list = owner === undefined ? 'every' : 'primary'
  const links = await q.listLinks(db, { ...slice, list, user: owner?.id ?? null, tag: '', after })
  return links.filter(({ slug }) => slug.startsWith(prefix))
}

/**
 * A page of a list by slug. Slugs that begin with the text come first: the index finds them at
 * once. The rest is examined in windows for a bounded time, so a rare text never holds the
 * database, however many links there are. When the time is up, the page has few links and a `next`
 * to go on from.
 */
export async function searchLinks(
  db: Database,
  clock: Clock,
  { filter, visitor, among }: LinkSearch,
  from: ListPosition | undefined,
  limit: number,
): Promise<LinksPage> {
  const list = among === 'mine' ? ROLES[filter.role] : listSeenBy(visitor)
  const tag = foldTag(filter.tag)
  const texts = partsOf(filter.q, /\s+/).slice(0, MAX_TEXTS)
  const stopAt = clock.elapsed() + SEARCH_MS
  const since = firstClickDay(clock.now())
  const patterns = texts.map((text) => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`)
  const prefix = prefixOf(texts)
  const links: ListedLink[] = []
  const start: ListPosition = { part: 'prefix', after: beforeSlugs(prefix) }
  let at = from ?? (prefix === '' ? REST : start)
  for (;;) {
    const { part, after } = at
    const inPrefix = part === 'prefix'
    const until = inPrefix ? prefix + LAST : LAST
    const window = { list, user: visitor.id, tag, after, until }
    const end = await q.findWindowEnd(db, { ...window, rows: WINDOW })
    const found = await q.searchLinks(db, {
      ...window,
      until: end?.slug ?? until,
      visibility: filter.visibility,
      patterns,
      but_prefix: inPrefix ? '' : prefix,
      since,
      limit: limit + 1 - links.length,
    })
    links.push(...found)
    if (links.length > limit) {
      // The last link found is the first of the next page.
      const last = found.at(-2)
      const next = last === undefined ? at : { part, after: last.slug }
      return { links: links.slice(0, limit), next, searchedTo: null }
    }
    if (end === undefined && !inPrefix) return { links, next: null, searchedTo: null }
    at = end === undefined ? REST : { part, after: end.slug }
    if (clock.elapsed() >= stopAt) return { links, next: at, searchedTo: at.after }
  }
}

/** The list of all links that a visitor may see. */
export function listSeenBy(visitor: User | undefined): ListScope {
  return visitor?.role === 'admin' ? 'every' : 'visible'
}

/** The text that slugs may begin with; '' when the texts are no beginning of a slug. */
function prefixOf([text = '', ...others]: readonly string[]): string {
  const folded = text.toLowerCase()
  return others.length === 0 && /^[a-z0-9][a-z0-9-]*$/.test(folded) ? folded : ''
}
