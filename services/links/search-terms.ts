import { linkMeant } from './link-meant.ts'
import type { TargetCache } from './target-cache.ts'

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
