import { decodeCursor, encodeCursor } from '../../../kernel/text.ts'
import { type ListPosition, isListRole, type ListFilter } from '../../../services/links/lists.ts'
import { isVisibility } from '../../../services/links/link-input.ts'
import { refusal, type Refusal } from '../../../services/links/refusal.ts'

const LONGEST = 200

/** Reads the filter of a list from a query; the refusal says what is wrong with it. */
export function readListFilter(query: URLSearchParams): ListFilter | Refusal {
  const [q = '', tag = '', visibility = '', role = ''] = ['q', 'tag', 'visibility', 'role'].map(
    (name) => (query.get(name) ?? '').trim(),
  )
  if (q.length > LONGEST || tag.length > LONGEST || /\0/.test(q + tag)) {
    return refusal('BAD_REQUEST', `a search may have ${LONGEST} characters at most, and no NUL`)
  }
  if (visibility !== '' && !isVisibility(visibility)) {
    return refusal('INVALID_VISIBILITY', 'visibility must be public, private or secure')
  }
  if (role !== '' && !isListRole(role)) {
    return refusal('BAD_REQUEST', 'role must be owner, co-owner or recipient')
  }
  return { q, tag, visibility, role }
}

export function listCursor({ part, after }: ListPosition): string {
  return encodeCursor([part, after])
}

/** Where a page begins: null for the first one, undefined for a cursor that is none of ours. */
export function readListCursor(text: string | null): ListPosition | null | undefined {
  if (text === null) return null
  const [part, after] = decodeCursor(text) ?? []
  if (part !== 'prefix' && part !== 'rest') return undefined
  return typeof after === 'string' && !after.includes('\0') ? { part, after } : undefined
}
