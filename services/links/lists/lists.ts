import Type from 'typebox'
import { Check } from 'typebox/value'
import type { Database } from '../../../db/client.ts'
import {
  listQueries as q,
  ListOrder,
  type ListedLink,
  type ListScope,
  type SearchSource,
} from '../../../db/links/lists.ts'
import type { User } from '../../../db/links/users.ts'
import { badRequest } from '../../../kernel/fault.ts'
import { decodeCursor } from '../../../kernel/text.ts'
import { field, parsed, withDefault } from '../../../kernel/validate.ts'
import { foldTag } from '../links/input.ts'
import { readSearch, type SearchText, type ShortAddress } from './search-text.ts'
import { beforeSlugs } from '../links/slug.ts'
import type { Caller } from '../users/groups.ts'

const MAX_TEXT = 200

const text = parsed(
  withDefault(Type.String({ maxLength: MAX_TEXT }), ''),
  `may have ${MAX_TEXT} characters at most, and no NUL`,
  (given) => {
    const trimmed = String(given).trim()
    return trimmed.length <= MAX_TEXT && !trimmed.includes('\0') ? trimmed : undefined
  },
)

const OTHER_LIST = 'is not from this list; start again from the first page'

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
    OTHER_LIST,
    (given): ListPosition | undefined => {
      const [sort, after, place] = decodeCursor(String(given)) ?? []
      // The database takes no NUL, so none of our cursors has one.
      if (typeof after !== 'string' || after.includes('\0')) return undefined
      if (!Check(ListOrder, sort) || !Number.isSafeInteger(place)) return undefined
      return { sort, after, place: Number(place) }
    },
  ),
})

/** What is searched for: among the visitor's own links, or among all that the visitor may see. */
export interface LinkSearch {
  filter: ListFilter
  visitor: Caller
  among: 'mine' | 'all'
}

/** The last link of a page in its order; `place` is its clicks, its time, or how its slug begins. */
export interface ListPosition {
  sort: ListOrder
  place: number
  after: string
}

export interface LinksPage {
  links: readonly ListedLink[]
  /** Where the next page begins; null on the last page. */
  next: ListPosition | null
}

const ROLES = { '': 'mine', owner: 'primary', 'co-owner': 'co', recipient: 'shared' } as const
/**
 * Links of a list that a search examines before it asks the index: a page of what many links match
 * is among them, and the index would give all of those links.
 */
const EXAMINED = 2_000
/** Patterns that the index looks up. */
const MAX_INDEXED = 3
/** The index knows parts of texts that have this many characters. */
const INDEXED_LENGTH = 3

/** What searches are made with. */
export interface SearchTools {
  db: Database
  short: ShortAddress
}

/** The part of a list that is asked for: at most `limit` rows whose key comes after `after`. */
export interface Slice {
  after: string
  limit: number
}

/** The links of a user, or of everybody for admins: the API's list (links.md section 4). */
export function listLinks(db: Database, caller: Caller, slice: Slice) {
  const list = caller.role === 'admin' ? 'every' : 'owned'
  return q.listLinks(db, { list, users: caller.ids, tag: '', ...slice })
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
  const users = owner === undefined ? [] : [owner.id]
  const links = await q.listLinks(db, { ...slice, list, users, tag: '', after })
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
  const list = { list: scopeOf(search), users: search.visitor.ids, tag: foldTag(tag) }
  return (await q.countLinks(db, { ...list, max })).links
}

/**
 * A page of a list. In the order of slugs, those that begin with the text come first. The page is
 * taken from the first links of the list if enough of them match, else from all that match.
 */
export async function searchLinks(
  { db, short }: SearchTools,
  search: LinkSearch,
  from: ListPosition | undefined,
  limit: number,
): Promise<LinksPage> {
  const { filter, visitor } = search
  const { sort, visibility } = filter
  if (from !== undefined && from.sort !== sort) throw badRequest(OTHER_LIST, 'cursor')
  const text = readSearch(filter.q, short)
  const fixed = fixedTags(search, text)
  const beginning = beginningOf(text)
  const onlyBeginning = text.texts.length > 0 && text.texts.every(isShort)
  if (onlyBeginning && beginning === '') return { links: [], next: null }
  // Lists of all links by slug are read by their first tag.
  const [tag = ''] = search.among === 'all' && sort === '' ? fixed : []
  const conditions = {
    visibility,
    texts: text.texts.map(patternOf),
    addresses: text.addresses.map(patternOf),
    owners: text.owners.map(patternOf),
    tags: fixed.filter((other) => other !== tag),
  }
  const isFiltered = Object.values(conditions).some((condition) => condition.length > 0)
  const asked = {
    ...{ list: scopeOf(search), users: visitor.ids, tag, sort },
    ...{ beginning, start: beforeSlugs(beginning), only_beginning: onlyBeginning },
    ...(from ?? { place: Number.MIN_SAFE_INTEGER, after: '' }),
    ...conditions,
    indexed: conditions.texts.toSorted((a, b) => b.length - a.length).slice(0, MAX_INDEXED),
    // Where every link matches, no more are read than the page needs.
    rows: isFiltered ? EXAMINED : limit + 1,
    limit: limit + 1,
  }
  let found = await q.searchLinks(db, { ...asked, source: 'list' })
  if (isFiltered && found.length <= limit) {
    const source: SearchSource = onlyBeginning ? 'beginning' : 'texts'
    found = await q.searchLinks(db, { ...asked, source, tags: fixed })
  }
  const links = found.slice(0, limit)
  const last = links.at(-1)
  const hasMore = found.length > limit && last !== undefined
  return { links, next: hasMore ? { sort, place: last.place, after: last.slug } : null }
}

/** The list of all links that a visitor may see. */
export function listSeenBy(visitor: Pick<Caller, 'role'> | undefined): ListScope {
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

/** A pattern that a text matches in which another one stands. */
function patternOf(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
}

/** The text that slugs may begin with; '' when the texts are no beginning of a slug. */
function beginningOf({ texts: [text = '', ...others] }: SearchText): string {
  const folded = text.toLowerCase()
  return others.length === 0 && /^[a-z0-9][a-z0-9-]*$/.test(folded) ? folded : ''
}

/** Whether the index knows no part of a text. */
function isShort(text: string): boolean {
  return [...text].length < INDEXED_LENGTH
}
