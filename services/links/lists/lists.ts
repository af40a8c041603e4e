import Type from 'typebox'
import type { Database } from '../../../db/client.ts'
import {
  listQueries as q,
  ListOrder,
  type ListedLink,
  type ListScope,
} from '../../../db/links/lists.ts'
import type { User } from '../../../db/links/users.ts'
import { decodeCursor } from '../../../kernel/text.ts'
import type { Clock } from '../../../kernel/time.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import { foldTag } from '../links/input.ts'
import { readSearch, type SearchText, type ShortAddress } from './search-text.ts'
import { beforeSlugs } from '../links/slug.ts'

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
  sort: field(withDefault(ListOrder, ''), 'must be clicks, created or changed'),
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
      const [part, after, place = 0] = decodeCursor(String(given)) ?? []
      // The database takes no NUL, so none of our cursors has one.
      if (typeof after !== 'string' || after.includes('\0')) return undefined
      if (!PARTS.includes(part as ListPosition['part'])) return undefined
      if (!Number.isSafeInteger(place)) return undefined
      return { part: part as ListPosition['part'], after, place: Number(place) }
    },
  ),
})

/** What is searched for: among the visitor's own links, or among all that the visitor may see. */
export interface LinkSearch {
  filter: ListFilter
  visitor: User
  among: 'mine' | 'all'
}

const PARTS = ['prefix', 'rest', 'sorted'] as const

/**
 * How far a list was read. In the order of slugs: among slugs that begin with the text (`prefix`),
 * or among the rest. In another order: up to the link at this place.
 */
export interface ListPosition {
  part: (typeof PARTS)[number]
  after: string
  place: number
}

export interface LinksPage {
  links: readonly ListedLink[]
  /** Where the next page begins; null on the last page. */
  next: ListPosition | null
  /** The last slug that was examined before the time was up; null when the page is complete. */
  searchedTo: string | null
}

const ROLES = { '': 'mine', owner: 'primary', 'co-owner': 'co', recipient: 'shared' } as const
/** Links that one query examines, and how long a page may search. */
const WINDOW = 2_000
const SEARCH_MS = 1_500
/** Only this many links of a user, the first by slug, are sorted in another order. */
export const MAX_SORTED = 1_000
/** Comes after all characters of slugs. */
const LAST = '{'

/** What searches are made with. */
export interface SearchTools {
  db: Database
  clock: Clock
  short: ShortAddress
}

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
 * The number of links in a list, counted up to `max`; undefined where only a search could tell.
 */
export async function countLinks(
  db: Database,
  search: LinkSearch,
  max: number,
): Promise<number | undefined> {
  const { q: text, visibility, tag } = search.filter
  const isRead = search.among === 'all' || tag === ''
  if (text !== '' || visibility !== '' || !isRead) return undefined
  const list = { list: scopeOf(search), user: search.visitor.id, tag: foldTag(tag) }
  return (await q.countLinks(db, { ...list, max })).links
}

/**
 * A page of a list. In the order of slugs, those that begin with the text come first: the index
 * finds them at once. The rest is examined in windows for a bounded time, so a rare text never
 * holds the database, however many links there are. When the time is up, the page has few links and
 * a `next` to go on from.
 */
export async function searchLinks(
  { db, clock, short }: SearchTools,
  search: LinkSearch,
  from: ListPosition | undefined,
  limit: number,
): Promise<LinksPage> {
  const { filter, visitor } = search
  const text = readSearch(filter.q, short)
  const fixed = fixedTags(search, text)
  const prefix = filter.sort === '' ? prefixOf(text) : ''
  // Lists of all links by slug are read by their first tag.
  const [tag = ''] = search.among === 'all' && filter.sort === '' ? fixed : []
  const list = { list: scopeOf(search), user: visitor.id, tag, sort: filter.sort }
  const conditions = {
    visibility: filter.visibility,
    patterns: text.texts.map(patternOf),
    owners: text.owners.map(patternOf),
    tags: fixed.filter((other) => other !== tag),
  }
  // Where every link matches, no more are read than the page needs.
  const isFiltered = Object.values(conditions).some((condition) => condition.length > 0)
  const stopAt = clock.elapsed() + SEARCH_MS
  const links: ListedLink[] = []
  let at = from ?? startOf(filter.sort, prefix)
  for (;;) {
    const { part, after, place } = at
    const inPrefix = part === 'prefix'
    const until = inPrefix ? prefix + LAST : LAST
    const left = limit + 1 - links.length
    const rows = isFiltered ? WINDOW : left
    const window = { ...list, after, until, place, rows, most_own: MAX_SORTED }
    const end = isFiltered ? await q.findWindowEnd(db, window) : undefined
    const found = await q.searchLinks(db, {
      ...window,
      ...conditions,
      // What is created meanwhile must not move the end.
      until: (part !== 'sorted' && end?.slug) || until,
      but_prefix: inPrefix ? '' : prefix,
      limit: left,
    })
    links.push(...found)
    if (links.length > limit) {
      // The last link found is the first of the next page.
      const last = found.at(-2)
      const next = last === undefined ? at : { part, after: last.slug, place: last.place }
      return { links: links.slice(0, limit), next, searchedTo: null }
    }
    if (end === undefined && !inPrefix) return { links, next: null, searchedTo: null }
    at = end === undefined ? REST : { part, after: end.slug, place: end.place }
    if (clock.elapsed() >= stopAt) return { links, next: at, searchedTo: at.after }
  }
}

/** The list of all links that a visitor may see. */
export function listSeenBy(visitor: User | undefined): ListScope {
  return visitor?.role === 'admin' ? 'every' : 'visible'
}

function scopeOf({ filter, visitor, among }: LinkSearch): ListScope {
  return among === 'mine' ? ROLES[filter.role] : listSeenBy(visitor)
}

/** All tags that a link must have. */
function fixedTags({ filter }: LinkSearch, { tags }: SearchText): readonly string[] {
  const tag = foldTag(filter.tag)
  return tag === '' ? tags : [...new Set([tag, ...tags])]
}

const REST: ListPosition = { part: 'rest', after: '', place: 0 }

function startOf(sort: ListOrder, prefix: string): ListPosition {
  // Every place is after this one, in any order.
  if (sort !== '') return { part: 'sorted', after: '', place: Number.MIN_SAFE_INTEGER }
  return prefix === '' ? REST : { part: 'prefix', after: beforeSlugs(prefix), place: 0 }
}

/** A pattern that a text matches in which another one stands. */
function patternOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
}

/** The text that slugs may begin with; '' when the texts are no beginning of a slug. */
function prefixOf({ texts: [text = '', ...others] }: SearchText): string {
  const folded = text.toLowerCase()
  return others.length === 0 && /^[a-z0-9][a-z0-9-]*$/.test(folded) ? folded : ''
}
