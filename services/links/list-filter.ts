import type { User, Visibility } from '../../db/links/rows.ts'
import type { ListScope } from '../../db/links/search.ts'
import type { LinkSearch } from './find-links.ts'

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

const TEXTS_MOST = 8

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

export function isListRole(text: string): text is Role {
  return Object.hasOwn(ROLES, text)
}
