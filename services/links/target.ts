import { refusal, type Refusal } from './refusal.ts'

/** The most characters of a link's url. */
export const URL_LONGEST = 2_048

/**
 * The most bytes of a `Location`: a character of a url becomes up to 12 of them. The examples of proxies
 * in deploy/ have room for it beside the other headers.
 */
export const LOCATION_LONGEST = 8_192

/** `{1}` to `{9}`: that segment of the visit's further path; `{*}`: all that no number takes. */
const PLACEHOLDER = /\{([1-9*])\}/g

/**
 * Why a url can't be a link's target, or undefined when it can (decisions.md section 4): `http` or
 * `https` with a host, no credentials, no control characters, no placeholder before the path.
 */
export function refuseTarget(text: string): Refusal | undefined {
  function bad(problem: string): Refusal {
    return refusal('INVALID_URL', `url ${problem}`, 'url')
  }
  if (text.length > URL_LONGEST) {
    const message = `url may have ${URL_LONGEST} characters at most`
    return refusal('INVALID_FIELD_LENGTH', message, 'url')
  }
  if (!text.isWellFormed()) return bad('must have no half of a character')
  // What a URL parser would drop in silence or move: spaces around it, tabs and line ends in it.
  // Those of a text's direction would show it in another order than it has.
  if (/[\p{Cc}\p{Bidi_C}\s]/u.test(text)) {
    return bad('must have no spaces and no control characters')
  }
  if (!/^https?:\/\/[^/\\]/i.test(text) || !URL.canParse(text)) {
    return bad('must be an http:// or https:// URL with a host, such as https://example.com/')
  }
  const { username, password, host, hostname } = new URL(text)
  if (username !== '' || password !== '' || /^[^/?#]*@/.test(text.slice(text.indexOf('//') + 2))) {
    return bad('must have no user name or password in it')
  }
  if (/[{}]/.test(decodeURIComponent(host)))
    return bad('must have no {placeholder} before its path')
  if (!/[a-z0-9]/.test(hostname)) return bad('must have a host with a letter or a digit')
  if (headerText(text).length > LOCATION_LONGEST) {
    const message = `url may have ${LOCATION_LONGEST} bytes at most once it is percent-encoded`
    return refusal('INVALID_FIELD_LENGTH', message, 'url')
  }
  return undefined
}

/** Where a link leads, prepared so that a plain visit costs nothing. */
export interface Target {
  readonly url: string
  /** Whether the url has places for further path segments. */
  readonly hasPlaces: boolean
  readonly appendsPath: boolean
}

export function prepareTarget(text: string, appendsPath: boolean): Target {
  const url = headerText(text)
  return { url, hasPlaces: url.search(PLACEHOLDER) >= 0, appendsPath }
}

/** The further path of a visit, which a link fills into its places or appends. */
export interface FurtherPath {
  /** Its segments as the visit wrote them; each of them can be decoded. */
  readonly segments: readonly string[]
  readonly endsWithSlash: boolean
}

export const NO_FURTHER_PATH: FurtherPath = { segments: [], endsWithSlash: false }

/**
 * Where a visit goes: its further segments fill the places or are appended, its query is merged into
 * the target's, and of two parameters with one name the visit's counts. Undefined when the link takes
 * no further segments. A text of over `LOCATION_LONGEST` characters may be cut: it is not to be sent.
 */
export function targetOf(
  { url, hasPlaces, appendsPath }: Target,
  { segments, endsWithSlash }: FurtherPath,
  search: string,
): string | undefined {
  if (segments.length === 0 && search === '' && !hasPlaces) return url
  const slash = endsWithSlash ? '/' : ''
  let rest = segments
  let filled = url
  if (hasPlaces) {
    const taken = new Set<number>()
    let takesRest = false
    for (const [, place] of url.matchAll(PLACEHOLDER)) {
      if (place === '*') takesRest = true
      else taken.add(Number(place) - 1)
    }
    const others = segments.filter((_, at) => !taken.has(at))
    const whole = others.length === 0 ? '' : others.map(encoded).join('/') + slash
    filled = fillPlaces(url, (place) =>
      place === '*' ? whole : encoded(segments[Number(place) - 1] ?? ''),
    )
    rest = takesRest ? [] : others
  }
  if (rest.length > 0 && !appendsPath) return undefined
  if (rest.length === 0 && search === '') return filled
  const target = new URL(filled)
  if (rest.length > 0) {
    const path = rest.map(asWritten).join('/') + slash
    target.pathname = `${target.pathname.replace(/\/$/, '')}/${path}`
  }
  if (search !== '') mergeQuery(target, search)
  return target.href
}

/** A url may have hundreds of places for one long segment: none is filled once it is too long. */
function fillPlaces(url: string, textFor: (place: string) => string): string {
  let length = url.length
  return url.replace(PLACEHOLDER, (braces, place: string) => {
    if (length > LOCATION_LONGEST) return braces
    const text = textFor(place)
    length += text.length - braces.length
    return text
  })
}

/** A segment where it may stand anywhere, also in a query. */
function encoded(segment: string): string {
  return encodeURIComponent(decodeURIComponent(segment))
}

/** A segment of a path, where these characters need no encoding: they stay as the visit has them. */
function asWritten(segment: string): string {
  return segment.replaceAll(/[^@:,;=$+]+/g, encoded)
}

/** By text: what both say stays as they have written it. */
function mergeQuery(target: URL, search: string): void {
  const added = new Set(namesOf(search))
  const kept = target.search
    .slice(1)
    .split('&')
    .filter((pair) => pair !== '' && !namesOf(pair).some((name) => added.has(name)))
  target.search = [...kept, search].join('&')
}

function namesOf(query: string): readonly string[] {
  // With the `&`, because a `?` in front would be dropped.
  return [...new URLSearchParams(`&${query}`).keys()]
}

/** A url as a header can bear it: a host in other letters in its ASCII form, all else percent-encoded. */
function headerText(text: string): string {
  if (!/[^!-~]/.test(text)) return text
  const { origin } = new URL(text)
  const [, rest = ''] = /^[^/]*\/\/[^/\\?#]*(.*)$/s.exec(text) ?? []
  return origin + rest.toWellFormed().replace(/[^!-~]+/g, encodeURIComponent)
}
