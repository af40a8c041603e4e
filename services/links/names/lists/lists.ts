import type { Database } from '../../../../db/client.ts'
import type { Link } from '../../../../db/links/names/links.ts'
import {
  listQueries as q,
  type ListedLink,
  type ListScope,
  type SearchSource,
} from '../../../../db/links/names/lists.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { foldTag } from '../links/input.ts'
import type { ShortAddress } from '../links/short-address.ts'
import { beforeSlugs } from '../links/slug.ts'
import { findUser } from '../../people/users/accounts.ts'
import {
  listName,
  NO_FILTER,
  OTHER_LIST,
  type LinksQuery,
  type ListFilter,
  type ListPosition,
} from './filter.ts'
import { readSearch, type SearchText } from './search-text.ts'
import { addressKey, STATE_KEYS } from './texts.ts'
import type { Caller } from '../../people/users/groups.ts'

/** What is searched for: among the visitor's own links, or among all that the visitor may see. */
export interface LinkSearch {
  filter: ListFilter
  visitor: Caller
  among: 'mine' | 'all'
}

export interface LinksPage {
  links: readonly ListedLink[]
  /** Where the next page begins; null on the last page. */
  next: ListPosition | null
}

const ROLES = {
  '': 'mine',
  owner: 'primary',
  'co-owner': 'co',
  'any-owner': 'owned',
  recipient: 'shared',
} as const
/** Links of a list that a search examines first. */
const EXAMINED = 2_000
/**
 * The most links that a search examines before it asks the index: a page of what many links match
 * is among them, and the index would give all of those links.
 */
const MAX_EXAMINED = 12_000
/**
 * With this many links, a user has enough of the first links of all users in an order to fill a
 * page. To read and sort all links of the user takes longer.
 */
const MANY_LINKS = 5_000
/**
 * Numbers of clicks that have a key in `link_texts`, the greatest first: links.clicks_keys() of the
 * database.
 */
const KEYED_CLICKS = [10_000, 1_000, 100]
/** Before all links of an order. */
const BEGINNING = { place: Number.MIN_SAFE_INTEGER, after: '' }
/** Comes after every slug: their characters are all below it. */
const AFTER_SLUGS = '{'
/** Patterns that the index looks up. */
const MAX_INDEXED = 3
/** The index knows parts of texts that have this many characters. */
const INDEXED_LENGTH = 3

/** Links that are read at once where all of them are wanted. */
const WALKED_AT_ONCE = 200

/** What searches are made with. */
interface SearchTools {
  db: Database
  short: ShortAddress
  now: Date
}

/** A list, and the ids of the user and groups whose it is. */
export interface SlugList {
  list: ListScope
  users: readonly string[]
}

/** Every link there is. */
export const EVERY_LINK: SlugList = { list: 'every', users: [] }

/** The part of a list that is asked for: at most `limit` rows whose key comes after `after`. */
export interface Slice {
  after: string
  limit: number
}

/**
 * The API's list without filters: the links of a user, or of everybody for admins (links.md section
 * 4).
 */
export function listLinks(db: Database, caller: Caller, slice: Slice) {
  const list = caller.role === 'admin' ? 'every' : 'owned'
  return q.listLinks(db, { list, users: caller.ids, tag: '', ...slice })
}

/** The links of a list by slug: those whose slug begins with a text, or all when it is empty. */
export async function listBySlug(
  db: Database,
  { list, users, prefix = '' }: SlugList & { prefix?: string },
  slice: Slice,
) {
  if (!/^[a-z0-9-]*$/.test(prefix)) return []
  const start = beforeSlugs(prefix)
  const after = slice.after > start ? slice.after : start
  const links = await q.listLinks(db, { ...slice, list, users, tag: '', after })
  return links.filter(({ slug }) => slug.startsWith(prefix))
}

/** The number of links in a list, counted up to `max`. */
export async function countBySlug(db: Database, list: SlugList, max: number): Promise<number> {
  return (await q.countLinks(db, { ...list, tag: '', max })).links
}

/**
 * The number of links in a list, counted up to `max`; undefined where only a search could tell.
 */
export async function countLinks(
  db: Database,
  search: LinkSearch,
  max: number,
): Promise<number | undefined> {
  const { tag, role: _role, sort: _sort, ...conditions } = search.filter
  const isRead = search.among === 'all' || tag === ''
  if (Object.values(conditions).some((value) => value !== '') || !isRead) return undefined
  const list = { list: scopeOf(search), users: search.visitor.ids, tag: foldTag(tag) }
  return (await q.countLinks(db, { ...list, max })).links
}

/** Name of the API's list without filters: of all links or those of one user, by slug. */
const PLAIN = 'links'

/** A page of the API's list: without filters the contract's, else a search. */
export async function findLinks(
  tools: SearchTools,
  caller: Caller,
  { scope, ...asked }: Omit<LinksQuery, 'cursor'>,
  from: ListPosition | undefined,
  limit: number,
): Promise<{ links: readonly Link[]; next: ListPosition | null }> {
  const filter = { ...NO_FILTER, ...asked }
  if (scope === undefined && isPlain(filter)) return plainPage(tools.db, caller, from, limit)
  const seesAll = caller.role === 'admin' || filter.url !== ''
  const search: LinkSearch =
    (scope ?? (seesAll ? 'all' : 'own')) === 'own'
      ? { filter: { ...filter, role: 'any-owner' }, visitor: caller, among: 'mine' }
      : { filter, visitor: caller, among: 'all' }
  const { links, next } = await searchLinks(tools, search, from, limit)
  return { links: links.map(linkOf), next }
}

/** Whether nothing is asked that the contract's list does not have. */
function isPlain(filter: ListFilter): boolean {
  return Object.entries(NO_FILTER).every(
    ([name, none]) => filter[name as keyof ListFilter] === none,
  )
}

async function plainPage(
  db: Database,
  caller: Caller,
  from: ListPosition | undefined,
  limit: number,
) {
  if (from !== undefined && from.list !== PLAIN) throw badRequest(`cursor ${OTHER_LIST}`, 'cursor')
  const found = await listLinks(db, caller, { after: from?.after ?? '', limit: limit + 1 })
  const links = found.slice(0, limit)
  const last = found.length > limit ? links.at(-1) : undefined
  return { links, next: last === undefined ? null : { after: last.slug, list: PLAIN, place: 0 } }
}

/**
 * A page of a list. In the order of slugs, those that begin with the text come first. The page is
 * taken from the first links of the list if enough of them match, else from all that match.
 */
export async function searchLinks(
  tools: SearchTools,
  search: LinkSearch,
  from: ListPosition | undefined,
  limit: number,
): Promise<LinksPage> {
  const { filter } = search
  const list = listName(scopeOf(search), filter)
  if (from !== undefined && from.list !== list) throw badRequest(`cursor ${OTHER_LIST}`, 'cursor')
  const question = await questionOf(tools, search)
  if (question === undefined) return { links: [], next: null }
  const found = await find(tools.db, question, from, limit + 1)
  const links = found.slice(0, limit)
  const last = found.length > limit ? links.at(-1) : undefined
  return { links, next: last === undefined ? null : { after: last.slug, list, place: last.place } }
}

/**
 * Examines the first links of a list. In the order of clicks, all that match with many clicks are
 * asked for next. The share that matches of the first links tells how many more fill the page, and
 * half as many again are examined. If these are too many, or none matches, asks for all that match.
 */
async function find(
  db: Database,
  { args, first, last }: Question,
  from: ListPosition | undefined,
  wanted: number,
): Promise<readonly ListedLink[]> {
  const found: ListedLink[] = []
  let { place, after } = from ?? BEGINNING
  async function look(source: SearchSource, rows: number, keys = args.keys) {
    const limit = wanted - found.length
    const more = await q.searchLinks(db, { ...args, source, rows, keys, place, after, limit })
    found.push(...more)
    const end = more.at(-1)
    place = end?.place ?? place
    after = end?.slug ?? after
    return more.length
  }
  async function lookAmongMostClicked() {
    // In the order of clicks, the place of a link is the number of its clicks, negative.
    const clicks = -place
    for (const least of KEYED_CLICKS.filter((keyed) => keyed <= clicks)) {
      await look(last, wanted, [...args.keys, `clicks:${least}`])
      if (found.length >= wanted) return
      // All that match with so many clicks are found: go on behind them.
      place = -least
      after = AFTER_SLUGS
    }
  }
  let examined = 0
  let matching = 0
  let rows = EXAMINED
  while (first !== undefined && found.length < wanted && examined + rows <= MAX_EXAMINED) {
    matching += await look(first, rows)
    examined += rows
    const missing = wanted - found.length
    rows = Math.max(EXAMINED, Math.ceil((1.5 * examined * missing) / matching))
    const isFirstPart = examined === EXAMINED
    const isWorthIt = matching > 0 && missing > 0 && hasClicksKeys(args, last)
    if (isFirstPart && isWorthIt) await lookAmongMostClicked()
  }
  if (found.length < wanted) await look(last, wanted)
  return found
}

/**
 * Whether the index gives the links with many clicks that match a text, and no others: it knows
 * three letters or digits in a row.
 */
function hasClicksKeys(args: { sort: string; indexed: readonly string[] }, last: SearchSource) {
  const isIndexed = args.indexed.some((text) => /[\p{L}\p{N}]{3}/u.test(text))
  return args.sort === 'clicks' && isIndexed && last === 'texts'
}

/** All links of a search, in parts: they may not fit into memory. */
export async function* walkLinks(
  tools: SearchTools,
  search: LinkSearch,
): AsyncGenerator<readonly ListedLink[]> {
  let from: ListPosition | undefined
  do {
    const page = await searchLinks(tools, search, from, WALKED_AT_ONCE)
    yield page.links
    from = page.next ?? undefined
  } while (from !== undefined)
}

type Question = NonNullable<Awaited<ReturnType<typeof questionOf>>>

/** A search as its query takes it; undefined when no link can match. */
async function questionOf({ db, short, now }: SearchTools, search: LinkSearch) {
  const { filter, visitor, among } = search
  const { sort, visibility, state } = filter
  const text = readSearch(filter.q, short)
  const beginning = beginningOf(text)
  const onlyBeginning = text.texts.length > 0 && text.texts.every(isShort)
  const owner = filter.owner === '' ? undefined : await findUser(db, filter.owner)
  const isNobody = filter.owner !== '' && owner === undefined
  if (isNobody || (onlyBeginning && beginning === '')) return undefined
  const fixed = fixedTags(search, text)
  // Lists of all links by slug are read by their first tag.
  const [tag = ''] = among === 'all' && sort === 'slug' ? fixed : []
  const texts = text.texts.map(patternOf)
  const conditions = {
    visibility,
    state,
    texts,
    owner: owner?.id ?? '',
    keys: keysOf(filter),
    addresses: text.addresses.map(patternOf),
    owners: text.owners.map(patternOf),
    tags: fixed.filter((other) => other !== tag),
  }
  const list = scopeOf(search)
  const args = {
    list,
    users: visitor.ids,
    sort,
    tag,
    now,
    beginning,
    start: beforeSlugs(beginning),
    only_beginning: onlyBeginning,
    ...conditions,
    owner: owner?.id ?? null,
    tags: fixed,
    indexed: texts.toSorted((a, b) => b.length - a.length).slice(0, MAX_INDEXED),
    // An admin may see all links of an owner: they are a list.
    ...(list === 'every' && owner !== undefined && { list: 'owned', users: [owner.id] }),
  }
  const isFiltered = Object.values(conditions).some((condition) => condition.length > 0)
  const index: SearchSource = onlyBeginning ? 'beginning' : 'texts'
  // The index finds an address at once.
  const first = filter.url === '' ? await firstSource(db, args, isFiltered) : undefined
  const last: SearchSource = isFiltered ? index : 'list'
  return { args, first, last }
}

/** Where a search looks among the first links; undefined where it needs them all. */
async function firstSource(
  db: Database,
  args: { list: string; users: readonly string[]; sort: string },
  isFiltered: boolean,
): Promise<SearchSource | undefined> {
  if (await isLarge(db, args)) return 'order'
  return isFiltered ? 'list' : undefined
}

/** Whether a sorted list has links of a user that are too many to be read. */
async function isLarge(
  db: Database,
  { list, users, sort }: { list: string; users: readonly string[]; sort: string },
): Promise<boolean> {
  if (sort === 'slug' || list === 'every') return false
  const { links } = await q.countLinks(db, { list: 'mine', users, tag: '', max: MANY_LINKS })
  return links >= MANY_LINKS
}

/** The keys of `link_texts` that all found links must have. */
function keysOf({ url, state }: ListFilter): readonly string[] {
  const keys = url === '' ? [] : [addressKey(url)]
  return state === '' || state === 'active' ? keys : [...keys, STATE_KEYS[state]]
}

/** A link as the API describes it. */
export function linkOf(found: ListedLink): Link {
  const { place: _place, clicks: _clicks, clicked_at: _at, owner_name: _name, ...rest } = found
  const { is_primary: _primary, is_owner: _own, is_recipient: _recipient, ...link } = rest
  return link
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
