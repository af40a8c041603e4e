import type { Executor } from '../../db/client.ts'
import { listQueries, type Suggestion } from '../../db/links/lists.ts'
import type { User } from '../../db/links/users.ts'
import { decodeSegment } from '../../kernel/text.ts'
import { listSeenBy } from './lists.ts'
import { isSlug, MAX_SLUG, slugsMeant } from './slug.ts'
import type { KnownLink, TargetCache, VisitLevel } from './target-cache.ts'
import type { FurtherPath } from './target.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const MAX_SUGGESTIONS = 5
/**
 * A slug has 74 neighbours per letter. Of a longer text, only swapped and surplus letters are
 * tried.
 */
const MAX_FOR_ALL_MISTAKES = 10
/** A shorter text would suggest anything. */
const MIN_SUGGESTED_TEXT = 2

/**
 * What a visit's path asks for: a link by its first segment, decoded and without a `+` at its end.
 */
export interface VisitPath {
  asked: string
  more: FurtherPath
  previews: boolean
}

/**
 * Undefined for a path that no link can have. A slash at the end adds no segment. `.` and `..`
 * would leave the path that the link leads to; browsers resolve them before they ask. `..;x` is
 * refused, too: some servers take what follows a `;` for a parameter and go up.
 */
export function readVisitPath(path: string): VisitPath | undefined {
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  const decoded: string[] = []
  for (const segment of segments) {
    const text = decodeSegment(segment)
    if (text === undefined || /^\.\.?(;|$)/.test(text)) return undefined
    decoded.push(text)
  }
  const [first = ''] = decoded
  const endsWithSlash = path.length > 1 && path.endsWith('/')
  const more = { segments: segments.slice(1), endsWithSlash }
  const previewed = first.endsWith('+') ? first.slice(0, -1) : ''
  const previews = more.segments.length === 0 && slugsMeant(previewed).length > 0
  return { asked: previews ? previewed : first, more, previews }
}

/** The link that a visitor means by a name: the best of the slugs that it may stand for. */
export async function linkMeant(
  targets: TargetCache,
  name: string,
  now: number,
  level: VisitLevel,
): Promise<KnownLink | undefined> {
  for (const slug of slugsMeant(name)) {
    const link = await targets.find(slug, now, level)
    if (link !== undefined) return link
  }
  return undefined
}

/** What was typed into a browser's address bar: a link's name, and perhaps a path after it. */
interface SearchTerms {
  name: string
  /** What follows the name, with its `/`; '' when nothing does. */
  rest: string
}

/**
 * Reads what was typed, without a `/` in front, and without NUL, which neither database nor page
 * takes.
 */
export function readSearchTerms(text: string): SearchTerms {
  const terms = text.replaceAll('\0', '').trim().replace(/^\/+/, '')
  const [, name = '', rest = ''] = /^([^/]*)(.*)$/s.exec(terms) ?? []
  return { name: name.trim(), rest }
}

/**
 * The terms that lead to a link, or undefined when there is none. People also type the keyword, as
 * in `go/docs`: it is left out unless a link has its name.
 */
export async function termsOfLink(
  targets: TargetCache,
  terms: SearchTerms,
  keyword: string,
  now: number,
): Promise<SearchTerms | undefined> {
  if ((await linkMeant(targets, terms.name, now, 'trusted')) !== undefined) return terms
  if (terms.name.toLowerCase() !== keyword || terms.rest === '') return undefined
  const inner = readSearchTerms(terms.rest)
  const link = await linkMeant(targets, inner.name, now, 'trusted')
  return link === undefined ? undefined : inner
}

/** A path with each of its segments encoded. */
export function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/')
}

/**
 * Links that a visitor may see and may have meant by a text that is no link's slug: with a letter
 * wrong, missing or surplus, with two letters swapped, or with a slug that begins with the text.
 */
export async function suggestionsFor(
  db: Executor,
  text: string,
  visitor: User | undefined,
): Promise<readonly Suggestion[]> {
  const prefix = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, MAX_SLUG)
  if (prefix.length < MIN_SUGGESTED_TEXT) return []
  const list = listSeenBy(visitor)
  const user = visitor?.id ?? null
  const near = neighbours(prefix)
  return listQueries.suggestLinks(db, { list, user, near, prefix, limit: MAX_SUGGESTIONS })
}

/** The text itself and all slugs at one mistake from it. */
function neighbours(text: string): readonly string[] {
  const found = new Set([text])
  for (let at = 0; at <= text.length; at++) {
    const head = text.slice(0, at)
    const tail = text.slice(at)
    found.add(head + tail.slice(1))
    found.add(head + tail.slice(1, 2) + tail.slice(0, 1) + tail.slice(2))
    if (text.length > MAX_FOR_ALL_MISTAKES) continue
    for (const letter of LETTERS) {
      found.add(head + letter + tail.slice(1))
      found.add(head + letter + tail)
    }
  }
  return [...found].filter(isSlug)
}
