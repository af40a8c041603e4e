import { refusal, type Refusal } from './refusal.ts'

/** The most characters of a link's url. */
export const URL_LONGEST = 2_048

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
  const { username, password, host } = new URL(text)
  if (username !== '' || password !== '' || /^[^/?#]*@/.test(text.slice(text.indexOf('//') + 2))) {
    return bad('must have no user name or password in it')
  }
  if (/[{}]/.test(decodeURIComponent(host)))
    return bad('must have no {placeholder} before its path')
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

/**
 * Where a visit goes: its further segments (decoded) fill the places or are appended, its query is
 * merged into the target's, and of two parameters with one name the visit's counts. Undefined when
 * the link takes no further segments.
 */
export function targetOf(
  { url, hasPlaces, appendsPath }: Target,
  segments: readonly string[],
  search: string,
): string | undefined {
  if (segments.length === 0 && search === '' && !hasPlaces) return url
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
    filled = url.replace(PLACEHOLDER, (_, place: string) =>
      place === '*'
        ? others.map(encodeURIComponent).join('/')
        : encodeURIComponent(segments[Number(place) - 1] ?? ''),
    )
    rest = takesRest ? [] : others
  }
  if (rest.length > 0 && !appendsPath) return undefined
  if (rest.length === 0 && search === '') return filled
  const target = new URL(filled)
  if (rest.length > 0) {
    const path = rest.map(encodeURIComponent).join('/')
    target.pathname = `${target.pathname.replace(/\/$/, '')}/${path}`
  }
  if (search !== '') mergeQuery(target, search)
  return target.href
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
