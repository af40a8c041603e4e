import type { Link } from '../../../../db/links/names/links.ts'
import type { Fault } from '../../../../kernel/fault.ts'
import { linksFault } from '../../faults.ts'
import { hasScheme } from './short-address.ts'
import { foreignPlaceIn, type ForeignPlace } from './foreign-places.ts'
import {
  defaultProblem,
  fillPlaces,
  hasPlaces,
  placeNames,
  userPlaceOf,
  wholeDefaults,
  withoutBraces,
  type UserPlace,
} from './placeholders.ts'

/** Characters of a link's url. */
export const MAX_URL = 8_192

/**
 * Bytes of a `Location`: a character of a url becomes up to 12 bytes. The proxy examples in
 * deploy/ have room for it beside the other headers.
 */
export const MAX_LOCATION = 8_192

/** They run code or read files in the visitor's browser: no link and no form leads there. */
export const REFUSED_SCHEMES: ReadonlySet<string> = new Set([
  'javascript',
  'data',
  'file',
  'blob',
  'vbscript',
  'about',
])

/**
 * Throws the Fault that says why a url can't be a link's target (decisions.md section 4): it must
 * be `http` or `https` with a host, without credentials, control characters, or a placeholder
 * before its path. `checkScheme` decides whether another scheme is allowed.
 */
export function checkTarget(text: string): void {
  if (text.length > MAX_URL) throw tooLong(`${MAX_URL} characters at most`)
  if (!text.isWellFormed()) throw invalidUrl('must have no half of a character')
  const foreign = foreignPlaceIn(text)
  if (foreign !== undefined) throw foreignPlace(foreign)
  // A URL parser would silently drop or move spaces, tabs and line ends. Characters that change the
  // direction of text would show the url in a misleading order.
  if (/[\p{Cc}\p{Bidi_C}\s]/u.test(text)) {
    throw invalidUrl('must have no spaces and no control characters')
  }
  // A port that is a place could not be parsed.
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/\\?#]*[{}]/i.test(text)) throw placeInHost()
  const other = otherScheme(text)
  const isAddress =
    other === undefined ? /^https?:\/\/[^/\\]/i.test(text) : !REFUSED_SCHEMES.has(other)
  if (!isAddress || !URL.canParse(text)) throw notTarget([])
  const { username, password, hostname } = new URL(text)
  if (username !== '' || password !== '' || /^[^:]*:\/\/[^/?#]*@/.test(text)) {
    throw invalidUrl('must have no user name or password in it')
  }
  if (other === undefined) {
    if (/[{}]/.test(hostname)) throw placeInHost()
    if (!/[a-z0-9]/.test(hostname)) throw invalidUrl('must have a host with a letter or a digit')
  }
  const problem = defaultProblem(text)
  if (problem !== undefined) throw invalidUrl(problem)
  // Such a default has no places of its own.
  for (const address of wholeDefaults(text)) checkTarget(address)
  if (headerText(text).length > MAX_LOCATION) {
    throw tooLong(`${MAX_LOCATION} bytes at most once it is percent-encoded`)
  }
}

/** Whether a url can be a link's target. */
export function isTarget(text: string): boolean {
  try {
    checkTarget(text)
    return true
  } catch {
    return false
  }
}

/** A host with a dot, or `localhost`, with a port perhaps; then a path, a query or nothing. */
const BARE_ADDRESS = new RegExp(
  '^(?:localhost|(?:[\\p{L}\\p{N}-]+\\.)+\\p{L}[\\p{L}\\p{N}-]*|\\d{1,3}(?:\\.\\d{1,3}){3})' +
    '(?::\\d{1,5})?(?:[/?#]|$)',
  'iu',
)

/**
 * The url that people mean who leave out `https://`, or who paste an address with blanks in it; any
 * other text as it is.
 */
export function completeUrl(text: string): string {
  const typed = text.trim()
  const url = hasScheme(typed) && !typed.includes('{{') ? typed.replaceAll(' ', '%20') : typed
  return BARE_ADDRESS.test(url) ? `https://${url}` : url
}

/** The scheme of a url, in lower case; undefined for http, https, and a text without a scheme. */
export function otherScheme(text: string): string | undefined {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):./i.exec(text) ?? []
  const other = scheme?.toLowerCase()
  return other === 'http' || other === 'https' ? undefined : other
}

/** The Fault of a text that is no http:// or https:// URL, and has none of these schemes. */
export function notTarget(schemes: readonly string[]): Fault {
  const others = schemes.map((scheme) => `${scheme}:`).join(', ')
  const further = others === '' ? 'such as https://example.com/' : `or begin with ${others}`
  return invalidUrl(`must be an http:// or https:// URL with a host, ${further}`)
}

/** The Fault of a url that can't be a link's target. */
export function invalidUrl(problem: string): Fault {
  return linksFault('INVALID_URL', `url ${problem}`, 'url')
}

/** What the place is here, and how to write it where it is no place. */
function foreignPlace({ found, meant, problem }: ForeignPlace): Fault {
  const offered = meant === undefined || !isTarget(meant.url) ? undefined : meant
  const appends = offered?.append_path === true ? ' with append_path' : ''
  const here = offered === undefined ? '' : `; here it is ${offered.url}${appends}`
  const why = problem === undefined ? '' : `: ${problem}`
  const literal = withoutBraces(found).replace('%s', '%25s')
  return invalidUrl(
    `has ${found}, a place of another program${why}${here}. As plain text it is ${literal}`,
  )
}

/**
 * Throws the Fault of a link with a place that no visit can fill: what comes before it in the path
 * has nowhere to go.
 */
export function checkPlaces({ url, append_path }: TargetFields): void {
  const names = placeNames(url)
  if (append_path || names.has('*')) return
  const numbers = [...names].map(Number).filter((number) => number > 0)
  const last = Math.max(0, ...numbers)
  const missing = Array.from({ length: last }, (_, at) => at + 1).find((n) => !numbers.includes(n))
  if (missing === undefined) return
  throw invalidUrl(`has {${last}} without {${missing}}, so no visit can fill it; count from {1}`)
}

function placeInHost(): Fault {
  return invalidUrl('must have no {placeholder} before its path')
}

function tooLong(limit: string): Fault {
  return linksFault('INVALID_FIELD_LENGTH', `url may have ${limit}`, 'url')
}

/** The fields of a link that say where it leads. */
export type TargetFields = Pick<Link, 'url' | 'append_path'>

/** Where a link leads, prepared once so that a plain visit costs nothing. */
export interface Target extends TargetFields {
  /** Whether the url has places that a visit fills. */
  hasPlaces: boolean
  userPlace: UserPlace
}

export function prepareTarget<T extends TargetFields>(link: T): T & Target {
  const url = headerText(link.url)
  return { ...link, url, hasPlaces: hasPlaces(url), userPlace: userPlaceOf(url) }
}

/** The further path of a visit, which a link fills into its places or appends. */
export interface FurtherPath {
  /** Its segments as the visit wrote them; each of them can be decoded. */
  segments: readonly string[]
  endsWithSlash: boolean
}

export const NO_FURTHER_PATH: FurtherPath = { segments: [], endsWithSlash: false }

/**
 * Where a visit goes. Its further segments fill the places or are appended; its query is merged
 * into the target's, where the visit's parameters replace those of the same name. `user` is the
 * visitor's e-mail address. Undefined when the link takes no further segments, or needs a user that
 * is not known. A result of over `MAX_LOCATION` characters may be incomplete: don't send it.
 */
export function targetOf(
  { url, hasPlaces, userPlace, append_path }: Target,
  { segments, endsWithSlash }: FurtherPath,
  search: string,
  user?: string,
): string | undefined {
  if (segments.length === 0 && search === '' && !hasPlaces) return url
  if (userPlace === 'required' && user === undefined) return undefined
  const slash = endsWithSlash ? '/' : ''
  let rest = segments
  let filled = url
  if (hasPlaces) {
    const names = placeNames(url)
    const others = segments.filter((_, at) => !names.has(String(at + 1)))
    const whole = others.length === 0 ? '' : others.map(encoded).join('/') + slash
    const textOf = (name: string) => {
      if (name === '*') return whole
      if (name === 'user') return encodeURIComponent(user ?? '')
      return encoded(segments[Number(name) - 1] ?? '')
    }
    filled = fillPlaces(url, textOf, MAX_LOCATION)
    rest = names.has('*') ? [] : others
  }
  if (rest.length > 0 && !append_path) return undefined
  if (rest.length === 0 && search === '') return filled
  const target = new URL(filled)
  if (rest.length > 0) {
    const path = rest.map(asWritten).join('/') + slash
    target.pathname = `${target.pathname.replace(/\/$/, '')}/${path}`
  }
  if (search !== '') mergeQuery(target, search)
  return target.href
}

/** A segment encoded so that it may stand anywhere, also in a query. */
function encoded(segment: string): string {
  return encodeURIComponent(decodeURIComponent(segment))
}

/**
 * A segment for a path. These characters need no encoding there and stay as the visit wrote them.
 */
function asWritten(segment: string): string {
  return segment.replaceAll(/[^@:,;=$+]+/g, encoded)
}

/** Merges two queries as text: both keep their spelling. */
function mergeQuery(target: URL, search: string): void {
  const added = new Set(namesOf(search))
  const kept = target.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !namesOf(pair).some((name) => added.has(name)))
  target.search = [...kept, search].join('&')
}

function namesOf(query: string): readonly string[] {
  // Without the `&` in front, URLSearchParams would drop a leading `?`.
  return [...new URLSearchParams(`&${query}`).keys()]
}

/** A url as header text: its host in ASCII, everything else percent-encoded. */
function headerText(text: string): string {
  if (!/[^!-~]/.test(text)) return text
  if (otherScheme(text) !== undefined) return text.replace(/[^!-~]+/g, encodeURIComponent)
  const { origin } = new URL(text)
  const [, rest = ''] = /^[^/]*\/\/[^/\\?#]*(.*)$/s.exec(text) ?? []
  return origin + rest.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent)
}
