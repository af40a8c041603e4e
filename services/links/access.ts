import { findLink } from '../../db/links/links.ts'
import type { Link, LinkAccess, User } from '../../db/links/rows.ts'
import type { Executor } from '../../db/client.ts'
import { refusal, type Refusal } from './refusal.ts'

/** What a caller wants with a link: `read` also for whom it is shared with, `change` for owners only. */
export type Purpose = 'read' | 'change'

/** A link that the caller may read or change (links.md section 5), or why not: 404 before 403. */
export async function linkFor(
  db: Executor,
  id: string,
  caller: User,
  purpose: Purpose,
): Promise<LinkAccess | Refusal> {
  const link = await findLink(db, id, caller.id)
  if (link === undefined) return refusal('NOT_FOUND', 'no link has this id')
  if (link.is_owner || caller.role === 'admin') return link
  if (purpose === 'read' && link.is_recipient) return link
  return refusal('FORBIDDEN', `this link is not yours to ${purpose}; ask one of its owners`)
}

/** A link without what the caller is to it. */
export function plainLink(found: LinkAccess): Link {
  const { is_owner: _owner, is_recipient: _recipient, ...link } = found
  return link
}
