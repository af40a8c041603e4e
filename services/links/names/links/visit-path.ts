import { decodeSegment } from '../../../../kernel/text.ts'
import { nameMeant } from './slug.ts'
import type { FurtherPath } from './target.ts'

/**
 * What a visit's path asks for: a link by its first segment, decoded and without a `+` at its end.
 */
interface VisitPath {
  asked: string
  more: FurtherPath
  previews: boolean
}

/**
 * Undefined for a path that no link can have. A slash at the end adds no segment. `.` and `..`
 * would leave the path that the link leads to; browsers resolve them before they ask. `..;x` is
 * refused, too: some servers take what follows a `;` for a parameter and go up.
 */
export function readVisitPath(path: string): VisitPath | undefined {
  const segments = path.replace(/^\/+/, '').replace(/\/$/, '').split('/')
  const decoded: string[] = []
  for (const segment of segments) {
    const text = decodeSegment(segment)
    if (text === undefined || /^\.\.?(;|$)/.test(text)) return undefined
    decoded.push(text)
  }
  const [first = ''] = decoded
  const endsWithSlash = path.length > 1 && path.endsWith('/')
  const more = { segments: segments.slice(1), endsWithSlash }
  const previewed = first.endsWith('+') ? first.slice(0, -1) : ''
  const previews = more.segments.length === 0 && nameMeant(previewed) !== undefined
  return { asked: previews ? previewed : first, more, previews }
}
