import { decodeSegment } from '../../kernel/percent.ts'
import { slugsMeant } from './slug.ts'

/** What a visit's path asks for: its segments, decoded, the first without a `+` at its end. */
export interface VisitPath {
  readonly asked: string
  readonly more: readonly string[]
  readonly previews: boolean
}

/**
 * Undefined for a path that no link can have. A slash at the end adds no segment. `.` and `..` would
 * lead out of the place that the link gives to the path; browsers have resolved them before.
 */
export function readVisitPath(path: string): VisitPath | undefined {
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  const decoded: string[] = []
  for (const segment of segments) {
    const text = decodeSegment(segment)
    if (text === undefined || text === '.' || text === '..') return undefined
    decoded.push(text)
  }
  const [first = '', ...more] = decoded
  const previews =
    more.length === 0 && first.endsWith('+') && slugsMeant(first.slice(0, -1)).length > 0
  return { asked: previews ? first.slice(0, -1) : first, more, previews }
}
