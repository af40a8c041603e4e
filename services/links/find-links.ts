import type { Database } from '../../db/client.ts'
import type { ListedLink } from '../../db/links/rows.ts'
import { findLinks, linkWindowEnd, type LinkFilter } from '../../db/links/search.ts'
import type { Clock } from '../../kernel/time.ts'
import { firstClickDay } from './click-days.ts'
import { beforeSlugs } from './slug.ts'

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
