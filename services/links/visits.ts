import { decodeSegment } from '../../kernel/text.ts'
import { slugsMeant, isSlug, SLUG_LONGEST } from './slug.ts'
import type { FurtherPath } from './target.ts'
import type { KnownLink, TargetCache, VisitLevel } from './target-cache.ts'
import type { Executor } from '../../db/client.ts'
import type { Suggestion } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { suggestLinks } from '../../db/links/visits.ts'

/** What a visit's path asks for: a link by its first segment, decoded and without a `+` at its end. */
export interface VisitPath {
  readonly asked: string
  readonly more: FurtherPath
  readonly previews: boolean
}

/**
 * Undefined for a path that no link can have. A slash at the end adds no segment. `.` and `..` would
 * lead out of the place that the link gives to the path; browsers have resolved them before. With
 * something behind a `;` they still do so at servers that take it for a parameter.
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
  const more = { segments: segments.slice(1), endsWithSlash: path.length > 1 && path.endsWith('/') }
  const previews =
    more.segments.length === 0 && first.endsWith('+') && slugsMeant(first.slice(0, -1)).length > 0
  return { asked: previews ? first.slice(0, -1) : first, more, previews }
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
export interface SearchTerms {
  readonly name: string
  /** What follows the name, with its `/`; '' when nothing does. */
  readonly rest: string
}

/** Reads what was typed; a `/` before the name says nothing, nor does NUL, which no database and no page takes. */
export function readSearchTerms(text: string): SearchTerms {
  const terms = text.replaceAll('\0', '').trim().replace(/^\/+/, '')
  const slash = terms.indexOf('/')
  return slash < 0
    ? { name: terms, rest: '' }
    : { name: terms.slice(0, slash).trim(), rest: terms.slice(slash) }
}

/**
 * The terms that lead to a link, or undefined when there is none. People also type the keyword, as in
 * `go/docs`: it is left out unless a link has its name.
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

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789-'
const MOST = 5
/** A slug has 74 neighbours a letter; of a longer one only those with two letters swapped or one too many are tried. */
const LONGEST_FOR_ALL = 10
/** A shorter beginning would suggest anything. */
const SHORTEST_PREFIX = 2

/**
 * Links that a visitor may have meant by text that is no link's slug: a letter wrong, missing, too
 * many or two in the wrong order, or a slug that begins with the text. Only what the visitor may see.
 */
export function suggestionsFor(
  db: Executor,
  text: string,
  visitor: User | undefined,
): Promise<readonly Suggestion[]> {
  const asked = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, SLUG_LONGEST)
  if (asked.length < SHORTEST_PREFIX) return Promise.resolve([])
  return suggestLinks(db, neighbours(asked), asked, visitor, MOST)
}

/** The text itself and all slugs at one mistake from it. */
function neighbours(text: string): readonly string[] {
  const found = new Set([text])
  for (let at = 0; at <= text.length; at++) {
    const [head, tail] = [text.slice(0, at), text.slice(at)]
    found.add(head + tail.slice(1))
    found.add(head + tail.slice(1, 2) + tail.slice(0, 1) + tail.slice(2))
    if (text.length > LONGEST_FOR_ALL) continue
    for (const letter of LETTERS) {
      found.add(head + letter + tail.slice(1))
      found.add(head + letter + tail)
    }
  }
  return [...found].filter(isSlug)
}
