import { Fault } from '../../../../kernel/fault.ts'
import type { TargetFields } from './target.ts'
import { fromTemplate } from './templates.ts'

/** A place as another program writes it, in a url that is typed. */
export interface ForeignPlace {
  /** As it was written. */
  found: string
  /** What the url would be here; undefined where no url says the same. */
  meant: TargetFields | undefined
  /** What stands in the way of that. */
  problem: string | undefined
}

/** Of golink and other programs with Go's templates. */
const ACTION = /\{\{[^{}]*\}\}/

/** The whole path of a visit: of OpenSearch, and of several programs. */
const WHOLE_PATH = /\{(?:path|searchTerms)\}/gi

/** The next part of it: of Trotto, and of the keywords of browsers. */
const NEXT_PART = /%s(?![a-z0-9])/g

const MAX_NUMBERED = 9

/** What another program's place in a url is here; undefined for a url without one. */
export function foreignPlaceIn(url: string): ForeignPlace | undefined {
  const [action] = ACTION.exec(url) ?? []
  if (action !== undefined) return { found: action, ...translated(url) }
  const parts = url.match(NEXT_PART) ?? []
  const [found] = parts.length > 0 ? parts : (url.match(WHOLE_PATH) ?? [])
  if (found === undefined) return undefined
  const meant = { url: replaced(url, parts.length), append_path: false }
  return { found, meant, problem: undefined }
}

/** A single part stands for all that follows the name, several for one segment each. */
function replaced(url: string, parts: number): string {
  let part = 0
  const place = () => (parts === 1 || ++part > MAX_NUMBERED ? '{*}' : `{${part}}`)
  return url.replaceAll(WHOLE_PATH, '{*}').replaceAll(NEXT_PART, place)
}

function translated(template: string): Pick<ForeignPlace, 'meant' | 'problem'> {
  try {
    return { meant: fromTemplate(template), problem: undefined }
  } catch (error) {
    if (!(error instanceof Fault)) throw error
    return { meant: undefined, problem: error.message }
  }
}

/** A text in which places of other programs are text, which leads to the same address. */
export function withoutForeignPlaces(url: string): string {
  return url
    .replaceAll('{{', '%7B%7B')
    .replaceAll(WHOLE_PATH, (place) => `%7B${place.slice(1)}`)
    .replaceAll(NEXT_PART, '%25s')
}
