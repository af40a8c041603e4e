import { trimEnd } from '../../../../kernel/text.ts'
import { placeNames } from './placeholders.ts'
import { MAX_LOCATION, prepareTarget, targetOf, type TargetFields } from './target.ts'
import { readVisitPath } from './visit-path.ts'

/** A place of a link for a part of a visit's path, as a form shows it. */
export interface Place {
  /** Of its field. */
  name: string
  /** `{1}`, or undefined for a path that is appended. */
  placeholder: string | undefined
  /** What an example has in it. */
  sample: string
  typed: string
}

/** A visit with a further path, and where it goes. */
export interface Example {
  places: readonly Place[]
  /** Whether the path is made of samples, because nothing was typed. */
  isSample: boolean
  /** Path of the visit. */
  path: string
  /** Undefined when the link does not take this path. */
  location: string | undefined
}

/** What was typed into the field of a place. */
export type TypedPlace = (name: string) => string | null | undefined

const SAMPLES = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine']
const SAMPLE_REST = 'a/b'
const SAMPLE_USER = 'you@example.com'

/**
 * An example of a visit, made of what was typed into the fields of the link's places. Undefined for
 * a link that takes no further path.
 */
export function exampleOf(
  link: TargetFields & { slug: string },
  typed: TypedPlace,
  user = SAMPLE_USER,
): Example | undefined {
  const places = placesOf(link, typed)
  if (places.length === 0) return undefined
  const isSample = places.every((place) => place.typed === '')
  const texts = places.map(({ sample, typed, placeholder }) => {
    const text = isSample ? sample : typed
    return placeholder === '{*}' || placeholder === undefined ? text.split('/') : [text]
  })
  const segments = trimEnd(texts.flat().map(encodeURIComponent).join('/'), /\//)
  const path = `/${link.slug}${segments === '' ? '' : `/${segments}`}`
  return { places, isSample, path, location: locationOf(link, path, user) }
}

/** The numbered segments up to the last that the url has a place for, then all others. */
function placesOf({ url, append_path }: TargetFields, typed: TypedPlace): readonly Place[] {
  const found = placeNames(url)
  const last = Math.max(0, ...[...found].map(Number).filter((place) => place > 0))
  const places = SAMPLES.slice(0, last).map((sample, at) => {
    const name = `place-${at + 1}`
    return { name, placeholder: `{${at + 1}}`, sample, typed: typed(name)?.trim() ?? '' }
  })
  if (!found.has('*') && !append_path) return places
  const name = 'place-rest'
  const placeholder = found.has('*') ? '{*}' : undefined
  const rest = { name, placeholder, sample: SAMPLE_REST, typed: typed(name)?.trim() ?? '' }
  return [...places, rest]
}

function locationOf(link: TargetFields, path: string, user: string): string | undefined {
  const visit = readVisitPath(path)
  const location = visit && targetOf(prepareTarget(link), visit.more, '', user)
  return location !== undefined && location.length <= MAX_LOCATION ? location : undefined
}
