import { refusal, type Refusal } from './refusal.ts'

/** links.md section 2; 2 to 64 characters. */
export const SLUG_PATTERN = '^[a-z0-9][a-z0-9-]*[a-z0-9]$'
export const SLUG_LONGEST = 64

const FORM = new RegExp(SLUG_PATTERN)
/** A longer path segment means no slug: whatever stands behind one is not looked through. */
const SEGMENT_LONGEST = 4 * SLUG_LONGEST

/**
 * Stands before all slugs that begin with a text and after those that come before them: `~` is in no slug
 * and comes after all that are.
 */
export function beforeSlugs(prefix: string): string {
  if (prefix === '') return ''
  const last = prefix.length - 1
  return `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) - 1)}~`
}

/** Slugs that nobody may take. No slug can begin with the `-` of the pages' prefix `/-/`. */
export const RESERVED_SLUGS: ReadonlySet<string> = new Set(
  (
    'api healthz metrics robots favicon admin auth login logout links tags users settings static ' +
    'mcp u'
  ).split(' '),
)

/** True for text that could be a link's slug. */
export function isSlug(text: string): boolean {
  return text.length <= SLUG_LONGEST && FORM.test(text) && !RESERVED_SLUGS.has(text)
}

/** Why a slug can't be taken by anybody, or undefined when it can. */
export function refuseSlug(slug: string): Refusal | undefined {
  if (RESERVED_SLUGS.has(slug)) {
    return refusal('RESERVED_SLUG', 'slug is reserved; choose another one', 'slug')
  }
  if (slug.length > SLUG_LONGEST || !FORM.test(slug)) {
    return refusal(
      'INVALID_SLUG',
      `slug must have 2 to ${SLUG_LONGEST} of a-z, 0-9 and -, with a letter or digit at both ends`,
      'slug',
    )
  }
  return undefined
}

/**
 * The slugs that a visitor may mean by a path segment, best first: as it stands, in lower case, with
 * `_` as `-` and without punctuation at its end.
 */
export function slugsMeant(segment: string): readonly string[] {
  if (segment.length > SEGMENT_LONGEST) return []
  const folded = segment.toLowerCase()
  const trimmed = folded.replaceAll('_', '-').replace(/[^a-z0-9]+$/, '')
  return [...new Set([segment, folded, trimmed])].filter(isSlug)
}
