import type { Executor } from '../../../../db/client.ts'
import { listQueries, type Suggestion } from '../../../../db/links/names/lists.ts'
import { visitQueries } from '../../../../db/links/visits/visits.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import { trimBoth } from '../../../../kernel/text.ts'
import { listSeenBy } from '../../names/lists/lists.ts'
import { behindHost, hasScheme, type ShortAddress } from '../../names/links/short-address.ts'
import { foldName, hasSlugForm, MAX_SLUG, nameMeant } from '../../names/links/slug.ts'
import type { KnownLink, TargetCache, VisitLevel } from './target-cache.ts'
import { AFTER_WORDS, wordsOf } from '../../names/lists/words.ts'
import type { Caller } from '../../people/users/groups.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const MAX_SUGGESTIONS = 5
/**
 * A slug has 74 neighbours per letter. Of a longer text, only swapped and surplus letters are
 * tried.
 */
const MAX_FOR_ALL_MISTAKES = 10
/** A shorter text would suggest anything. */
const MIN_SUGGESTED_TEXT = 2
const MAX_SUGGESTED_WORDS = 4

/** Who looks for a link, and with what. */
export interface Search {
  db: Executor
  targets: TargetCache
  now: number
  level: VisitLevel
  /** The user who looks for it; asked for only where that decides. */
  visitor: () => Promise<Caller | undefined>
}

/**
 * The link that a visitor means by a name: the one that has it, else the only one that the visitor
 * may find whose name differs in dashes and dots only.
 */
export async function linkMeant(search: Search, text: string): Promise<KnownLink | undefined> {
  const name = nameMeant(text)
  if (name === undefined) return undefined
  const { link, namesakes } = await search.targets.find(name, search.now, search.level)
  if (link !== undefined) return link
  const found = await foundAmong(search, namesakes)
  return found.length === 1 ? found[0] : undefined
}

/** Links that a visitor may find. What the database can't tell now counts as hidden. */
async function foundAmong({ db, visitor }: Search, links: readonly KnownLink[]) {
  const open = links.filter(({ visibility }) => visibility === 'public')
  if (open.length === links.length) return open
  try {
    const user = await visitor()
    if (user === undefined) return open
    if (user.role === 'admin') return links
    const found: KnownLink[] = []
    for (const link of links) {
      const asked = { link: link.id, users: user.ids }
      if (open.includes(link) || (await visitQueries.mayVisit(db, asked)).may) found.push(link)
    }
    return found
  } catch (error) {
    if (error instanceof Unavailable) return open
    throw error
  }
}

/** Whether a visitor is an owner or a recipient of a secure link, also by a group, or an admin. */
export async function mayFollow(
  db: Executor,
  { id }: Pick<KnownLink, 'id'>,
  visitor: Caller | undefined,
): Promise<boolean> {
  if (visitor === undefined) return false
  if (visitor.role === 'admin') return true
  return (await visitQueries.mayVisit(db, { link: id, users: visitor.ids })).may
}

/** What was typed into a browser's address bar: a link's name, and perhaps more after it. */
interface SearchTerms {
  name: string
  /** Path, query and fragment as they were typed, with their first sign; '' without. */
  rest: string
}

/**
 * What may have been meant by a text: first the text as it is, then without the host or keyword in
 * front, as in `go/docs`. With `http://` only the latter. NUL is left out: neither database nor
 * page takes it.
 */
export function readSearchTerms(text: string, short: ShortAddress): readonly SearchTerms[] {
  const typed = text.replaceAll('\0', '').trim()
  const inner = behindHost(typed, short)
  const texts = inner !== undefined && hasScheme(typed) ? [inner] : [typed, inner]
  return texts.filter((path) => path !== undefined).map(termsOf)
}

/** A `#` or `?` in front begins no fragment and no query: `#tag` is a search. */
function termsOf(path: string): SearchTerms {
  const [, name = '', rest = ''] = /^\/*([#?]?[^/?#]*)(.*)$/s.exec(path) ?? []
  return { name: name.trim(), rest }
}

/** The first of these terms that lead to a link; undefined if none does. */
export async function termsOfLink(
  search: Search,
  meant: readonly SearchTerms[],
): Promise<SearchTerms | undefined> {
  for (const terms of meant) {
    if ((await linkMeant(search, terms.name)) !== undefined) return terms
  }
  return undefined
}

/**
 * What follows a link's name, encoded as browsers do it in their address bars: what is
 * percent-encoded stays so.
 */
export function encodeRest(rest: string): string {
  return rest
    .toWellFormed()
    .replaceAll(/%(?![0-9a-f]{2})|[^!-~]|["<>\\^`{|}]/giu, encodeURIComponent)
}

/** A path with each of its segments encoded. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/**
 * Links that a visitor may see, similar to a text that is not a slug. First those with a name that
 * differs in dashes only. One letter may be wrong, missing or surplus, or two letters swapped. Or
 * the slug begins with the text, or slug and title have all its words. Links whose visits have
 * ended are left out.
 */
export async function suggestionsFor(
  db: Executor,
  text: string,
  visitor: Caller | undefined,
  now: Date,
): Promise<readonly Suggestion[]> {
  const dashed = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  const folded = trimBoth(dashed, /-/).slice(0, MAX_SLUG)
  const words = wordsOf(text).slice(0, MAX_SUGGESTED_WORDS)
  const isShort = folded.length < MIN_SUGGESTED_TEXT
  if (isShort && words.length === 0) return []
  return listQueries.suggestLinks(db, {
    list: listSeenBy(visitor),
    users: visitor?.ids ?? [],
    folded: foldName(folded),
    near: isShort ? [] : neighbours(folded),
    // No slug begins with a brace.
    prefix: isShort ? '{' : folded,
    patterns: words.map((word) => `% ${word}%`),
    word: words.toSorted((a, b) => b.length - a.length)[0] ?? '',
    last: AFTER_WORDS,
    now,
    limit: MAX_SUGGESTIONS,
  })
}

/**
 * The text itself and all slugs at one mistake from it; some come twice. They go through no Set: V8
 * keeps each text that does in a table until its next full collection, which took 100 MiB while
 * strangers asked for unknown slugs.
 */
function neighbours(text: string): readonly string[] {
  const found = [text]
  for (let at = 0; at <= text.length; at++) {
    const head = text.slice(0, at)
    const tail = text.slice(at)
    found.push(head + tail.slice(1))
    found.push(head + tail.slice(1, 2) + tail.slice(0, 1) + tail.slice(2))
    if (text.length > MAX_FOR_ALL_MISTAKES) continue
    for (const letter of LETTERS) {
      found.push(head + letter + tail.slice(1))
      found.push(head + letter + tail)
    }
  }
  return found.filter(hasSlugForm)
}
