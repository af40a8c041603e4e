import type { Database } from '../../db/client.ts'
import type { ListedLink, Link, Visibility } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { findLinks, linkWindowEnd, type LinkFilter, type ListScope } from '../../db/links/search.ts'
import type { Clock } from '../../kernel/time.ts'
import { firstClickDay } from './clicks.ts'
import { beforeSlugs } from './slug.ts'
import { listLinks } from '../../db/links/links.ts'

/** A list of links and a search in it; slugs that begin with the search's text come first. */
export type LinkSearch = Omit<LinkFilter, 'butPrefix'>

/** How far a list was read: in its first part (slugs that begin with the text) or the rest. */
export interface ListPosition {
  readonly part: 'prefix' | 'rest'
  readonly after: string
}

export interface LinksPage {
  readonly links: readonly ListedLink[]
  /** Where the next page begins, or null when there is no more. */
  readonly next: ListPosition | null
  /** A search that looked long enough stops here; what comes after this slug was not looked at yet. */
  readonly searchedTo: string | null
}

/** Links that one step looks through, and how long a page may search. */
const STEP = 2_000
const SEARCH_MS = 1_500
/** Comes after all characters of slugs. */
const LAST = '{'

/**
 * A page of a list by slug, looked through in steps for a bounded time: a rare text never holds the
 * database, however many links there are. Slugs that begin with the text are found by the index, so
 * that they come at once; a page may end with few links and a `next` to go on from.
 */
export async function searchLinks(
  db: Database,
  clock: Clock,
  search: LinkSearch,
  from: ListPosition | undefined,
  limit: number,
): Promise<LinksPage> {
  const stopAt = clock.elapsed() + SEARCH_MS
  const since = firstClickDay(clock.now())
  const prefix = prefixOf(search)
  const found: { readonly link: ListedLink; readonly part: ListPosition['part'] }[] = []
  let at: ListPosition =
    from ?? (prefix === '' ? REST : { part: 'prefix', after: beforeSlugs(prefix) })
  for (;;) {
    const { part, after } = at
    const inPrefix = part === 'prefix'
    const range = { after, until: inPrefix ? prefix + LAST : LAST }
    const filter = { ...search, butPrefix: inPrefix ? '' : prefix }
    const end = await linkWindowEnd(db, filter, range, STEP)
    const window = { after, until: end ?? range.until }
    const rows = await findLinks(db, filter, window, since, limit + 1 - found.length)
    found.push(...rows.map((link) => ({ link, part })))
    const shown = found.slice(0, limit)
    const links = shown.map(({ link }) => link)
    const last = shown.at(-1)
    if (found.length > limit && last !== undefined) {
      return { links, next: { part: last.part, after: last.link.slug }, searchedTo: null }
    }
    if (end === undefined && !inPrefix) return { links, next: null, searchedTo: null }
    at = end === undefined ? REST : { part, after: end }
    if (clock.elapsed() >= stopAt) return { links, next: at, searchedTo: at.after }
  }
}

const REST: ListPosition = { part: 'rest', after: '' }

/** What slugs may begin with that are meant by a search; '' when its text is part of no slug. */
function prefixOf({ texts }: LinkSearch): string {
  const [text = '', ...more] = texts
  const folded = text.toLowerCase()
  return more.length === 0 && /^[a-z0-9][a-z0-9-]*$/.test(folded) ? folded : ''
}

/** What a slug may begin with: other text finds no link. */
const BEGINNING = /^[a-z0-9-]*$/

/**
 * All links whose slug begins with a text, after a slug. Lists go by slug, so these stand next to each
 * other: the list is read from where they begin.
 */
export async function linksByPrefix(
  db: Database,
  prefix: string,
  after: string,
  limit: number,
): Promise<readonly Link[]> {
  if (!BEGINNING.test(prefix)) return []
  const start = beforeSlugs(prefix)
  const links = await listLinks(db, after > start ? after : start, limit)
  return links.filter(({ slug }) => slug.startsWith(prefix))
}

/** What the filter of a list holds, as it was typed; '' asks for nothing. */
export interface ListFilter {
  readonly q: string
  readonly tag: string
  readonly visibility: Visibility | ''
  readonly role: Role | ''
}

/** What the visitor is to a link. */
export type Role = 'owner' | 'co-owner' | 'recipient'

const ROLES: Readonly<Record<Role, ListScope>> = {
  owner: 'primary',
  'co-owner': 'co',
  recipient: 'shared',
}

const TEXTS_MOST = 8

/** What is looked for: in the visitor's own links, or in all that the visitor may see. */
export function searchOf(
  { q, tag, visibility, role }: ListFilter,
  visitor: User,
  list: 'mine' | 'all',
): LinkSearch {
  const seen = visitor.role === 'admin' ? 'every' : 'visible'
  const own = role === '' ? 'mine' : ROLES[role]
  const normal = tag.toLowerCase().replaceAll(/[_ ]/g, '-')
  return {
    user: visitor.id,
    scope: list === 'mine' ? own : seen,
    tag: normal === '' ? undefined : normal,
    visibility: visibility === '' ? undefined : visibility,
    texts: q
      .split(/\s+/)
      .filter((text) => text !== '')
      .slice(0, TEXTS_MOST),
  }
}

export function isListRole(text: string): text is Role {
  return Object.hasOwn(ROLES, text)
}
