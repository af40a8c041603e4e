/**
 * A place in a link's url: `{1}` to `{9}` for that segment of the visit's further path, `{*}` for
 * all segments that no number takes, `{user}` for the visitor's e-mail address. What follows a
 * colon is its default: it stands there when the visit has nothing for the place.
 */
const PLACEHOLDER = /\{([1-9*]|user)(?::([^{}]*))?\}/g

/** What begins a place with a default. */
const BEGINNING = /\{(?:[1-9*]|user):(?![^{}]*\})/

/** A place, and where in the url it stands. */
export interface UrlPlace {
  name: string
  fallback: string | undefined
  start: number
  end: number
}

export function hasPlaces(url: string): boolean {
  return url.search(PLACEHOLDER) >= 0
}

export function placesIn(url: string): readonly UrlPlace[] {
  return [...url.matchAll(PLACEHOLDER)].map((match) => {
    const [place, name = '', fallback] = match
    return { name, fallback, start: match.index, end: match.index + place.length }
  })
}

/** The names of a url's places, such as `1`, `*` and `user`. */
export function placeNames(url: string): ReadonlySet<string> {
  return new Set(placesIn(url).map(({ name }) => name))
}

/** Whether a link needs to know its visitor; `optional`: it has a default for the others. */
export type UserPlace = 'none' | 'optional' | 'required'

export function userPlaceOf(url: string): UserPlace {
  if (url.includes('{user}')) return 'required'
  return placeNames(url).has('user') ? 'optional' : 'none'
}

/** What is wrong with the defaults in a url; undefined: nothing. */
export function defaultProblem(url: string): string | undefined {
  const [begun] = BEGINNING.exec(url) ?? []
  if (begun === undefined) return undefined
  return `must close the default after ${begun} with a }; in a default, { is %7B and } is %7D`
}

/**
 * The defaults that are whole addresses: a visit with nothing for such a place goes there, whatever
 * stands around it. `https://x.test/search?q={*:https://x.test/}` leads to the search only when
 * there is something to search for.
 */
export function wholeDefaults(url: string): readonly string[] {
  return placesIn(url)
    .map(({ fallback = '' }) => fallback)
    .filter(isWholeAddress)
}

export function isWholeAddress(text: string): boolean {
  return /^https?:\/\//i.test(text)
}

/**
 * The url with the text of each place, or its default where the text is empty. It is incomplete
 * once it is longer than `maxLength`: a url may have hundreds of places for one long segment.
 */
export function fillPlaces(
  url: string,
  textOf: (name: string) => string,
  maxLength: number,
): string {
  let length = url.length
  let whole: string | undefined
  const filled = url.replace(PLACEHOLDER, (place, name: string, fallback: string = '') => {
    if (length > maxLength) return place
    const text = textOf(name) || fallback
    // A text of the visit is encoded, so it is never an address.
    if (isWholeAddress(text)) whole ??= text
    length += text.length - place.length
    return text
  })
  return whole ?? filled
}

/** A text without places: what would be one leads to the same address as before. */
export function withoutPlaces(text: string): string {
  return text.replace(PLACEHOLDER, withoutBraces).replaceAll(/\{(?=(?:[1-9*]|user):)/g, '%7B')
}

/** A text as it may stand in a default. */
export function withoutBraces(text: string): string {
  return text.replaceAll('{', '%7B').replaceAll('}', '%7D')
}
