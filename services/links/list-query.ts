import type { User, Visibility } from '../../db/links/rows.ts'
import type { ListScope } from '../../db/links/search.ts'
import { decodeCursor, encodeCursor } from '../../kernel/cursor.ts'
import type { LinkSearch, ListPosition } from './find-links.ts'
import { isVisibility } from './link-input.ts'
import { refusal, type Refusal } from './refusal.ts'

/** What the filter of a list holds, as it was typed; '' asks for nothing. */
export interface ListFilter {
  readonly q: string
  readonly tag: string
  readonly visibility: Visibility | ''
  readonly role: Role | ''
}

/** What the visitor is to a link. */
export type Role = 'owner' | 'co-owner' | 'recipient'

const ROLES: Readonly<Record<Role, ListScope>> = {
  owner: 'primary',
  'co-owner': 'co',
  recipient: 'shared',
}

const LONGEST = 200
const TEXTS_MOST = 8

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
  if (role !== '' && !isRole(role)) {
    return refusal('BAD_REQUEST', 'role must be owner, co-owner or recipient')
  }
  return { q, tag, visibility, role }
}

/** What is looked for: in the visitor's own links, or in all that the visitor may see. */
export function searchOf(
  { q, tag, visibility, role }: ListFilter,
  visitor: User,
  list: 'mine' | 'all',
): LinkSearch {
  const seen = visitor.role === 'admin' ? 'every' : 'visible'
  const own = role === '' ? 'mine' : ROLES[role]
  const normal = tag.toLowerCase().replaceAll(/[_ ]/g, '-')
  return {
    user: visitor.id,
    scope: list === 'mine' ? own : seen,
    tag: normal === '' ? undefined : normal,
    visibility: visibility === '' ? undefined : visibility,
    texts: q
      .split(/\s+/)
      .filter((text) => text !== '')
      .slice(0, TEXTS_MOST),
  }
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

function isRole(text: string): text is Role {
  return Object.hasOwn(ROLES, text)
}
