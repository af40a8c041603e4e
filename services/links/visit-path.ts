import { decodeSegment } from '../../kernel/text.ts'
import { slugsMeant } from './slug.ts'
import type { FurtherPath } from './target.ts'

/** What a visit's path asks for: a link by its first segment, decoded and without a `+` at its end. */
export interface VisitPath {
  readonly asked: string
  readonly more: FurtherPath
  readonly previews: boolean
}

/**
 * Undefined for a path that no link can have. A slash at the end adds no segment. `.` and `..` would
 * lead out of the place that the link gives to the path; browsers have resolved them before. With
 * something behind a `;` they still do so at servers that take it for a parameter.
 */
export function readVisitPath(path: string): VisitPath | undefined {
  const segments = path.slice(1).replace(/\/$/, '').split('/')
  const decoded: string[] = []
  for (const segment of segments) {
    const text = decodeSegment(segment)
    if (text === undefined || /^\.\.?(;|$)/.test(text)) return undefined
    decoded.push(text)
  }
  const [first = ''] = decoded
  const more = { segments: segments.slice(1), endsWithSlash: path.length > 1 && path.endsWith('/') }
  const previews =
    more.segments.length === 0 && first.endsWith('+') && slugsMeant(first.slice(0, -1)).length > 0
  return { asked: previews ? first.slice(0, -1) : first, more, previews }
}
