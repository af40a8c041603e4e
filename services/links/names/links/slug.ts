import { trimBoth, trimEnd } from '../../../../kernel/text.ts'
import { linksFault } from '../../faults.ts'

/** links.md section 2; 2 to 64 characters. */
export const SLUG_PATTERN = '^[a-z0-9][a-z0-9-]*[a-z0-9]$'
export const MAX_SLUG = 64

const FORM = new RegExp(SLUG_PATTERN)
/** A longer path segment is not examined: looking for a slug in it would hold up everybody. */
const MAX_SEGMENT = 4 * MAX_SLUG

/** Slugs that nobody may take. No slug can begin with the `-` of the pages' prefix `/-/`. */
export const RESERVED_SLUGS: ReadonlySet<string> = new Set(
  (
    'api healthz metrics robots favicon admin auth login logout ' +
    'links tags users settings static mcp u'
  ).split(' '),
)

/** True for text that could be a link's slug. */
export function isSlug(text: string): boolean {
  return hasSlugForm(text) && !RESERVED_SLUGS.has(text)
}

/** True for text of the form of a slug; it may be a reserved one. */
export function hasSlugForm(text: string): boolean {
  return text.length <= MAX_SLUG && FORM.test(text)
}

/** Throws the Fault that says why nobody can take a slug, or one of a link's aliases. */
export function checkSlug(slug: string, field: 'slug' | 'aliases' = 'slug'): void {
  const name = field === 'slug' ? 'slug' : 'each of aliases'
  if (RESERVED_SLUGS.has(slug)) {
    const reserved = field === 'slug' ? 'slug' : `the alias ${slug}`
    throw linksFault('RESERVED_SLUG', `${reserved} is reserved; choose another one`, field)
  }
  if (!isSlug(slug)) {
    const form = `2 to ${MAX_SLUG} of a-z, 0-9 and -, with a letter or digit at both ends`
    throw linksFault('INVALID_SLUG', `${name} must have ${form}`, field)
  }
}

/** A name without its dashes: they don't matter to a visit whose name no link has. */
export function foldName(name: string): string {
  return name.replaceAll('-', '')
}

/**
 * A text that comes after all slugs that are less than `prefix`, and before all that begin with
 * it: `~` is in no slug and comes after all characters of slugs.
 */
export function beforeSlugs(prefix: string): string {
  if (prefix === '') return ''
  const last = prefix.length - 1
  return `${prefix.slice(0, last)}${String.fromCharCode(prefix.charCodeAt(last) - 1)}~`
}

/** Hyphens and dashes that programs of texts put in place of `-`. */
const DASHES = /[._\u2010-\u2015\u2212\ufe58\ufe63\uff0d]/g
/** Soft hyphens and characters without width, which come with a text that is copied. */
const UNSEEN = /[\u00ad\u200b-\u200d\u2060\ufeff]/g

/**
 * The name that a visitor means by a path segment: in lower case, with `_`, `.` and dashes as `-`,
 * without characters that nobody sees, and without punctuation at its end. Undefined for a segment
 * that can't be a name.
 */
export function nameMeant(segment: string): string | undefined {
  if (segment.length > MAX_SEGMENT) return undefined
  const typed = segment.toLowerCase().replaceAll(UNSEEN, '').replaceAll(DASHES, '-')
  const name = trimEnd(typed, /[^a-z0-9]/)
  return isSlug(name) ? name : undefined
}

/** How many slugs are tried in the place of one that is taken. */
const MAX_NEAR_SLUGS = 9

/**
 * Slugs most similar to a text, best first: `Über uns!` gives `uber-uns`, then `uber-uns-2`. Empty
 * for a text without letters and digits.
 */
export function slugsNear(text: string): readonly string[] {
  const plain = text.slice(0, MAX_SEGMENT).normalize('NFKD').replaceAll(/\p{M}/gu, '')
  const base = trimBoth(plain.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'), /-/).slice(0, MAX_SLUG)
  if (base === '') return []
  const numbered = Array.from({ length: MAX_NEAR_SLUGS - 1 }, (_, at) => {
    const end = `-${at + 2}`
    return trimBoth(base.slice(0, MAX_SLUG - end.length), /-/) + end
  })
  return [trimBoth(base, /-/), ...numbered].filter(isSlug)
}
