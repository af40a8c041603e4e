import type { Database } from '../../db/client.ts'
import { deletedQueries as q } from '../../db/links/deleted.ts'
import { historyQueries } from '../../db/links/history.ts'
import { linkQueries, type Link } from '../../db/links/links.ts'
import type { User } from '../../db/links/users.ts'
import { forbidden, notFound } from '../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../audit.ts'
import { linkAfter, type LinkParts } from './links/links.ts'
import { refuseLoop } from './links/loop.ts'
import { slugTaken } from './links/new.ts'
import { writeTexts } from './lists/texts.ts'
import { countTags, writeHiddenTags } from './tags.ts'
import { writeWords } from './visits/words.ts'

/** How long a deleted link can be restored. */
export const RESTORE_DAYS = 30

/** The deleted links that a user may restore: those that the user owned, and all for admins. */
export function listDeletedLinks(
  db: Database,
  caller: User,
  slice: { before: number; limit: number },
) {
  return q.listDeletedLinks(db, { user: caller.role === 'admin' ? null : caller.id, ...slice })
}

/**
 * Puts a deleted link back with its owners, shares, tags, history and clicks. Throws 404, then 403,
 * and 409 when another link has its slug by now. Its url may lead back to itself by now.
 */
export async function restoreLink(
  { actor, ...parts }: LinkParts & ChangeTools,
  caller: User,
  id: string,
  at: Date,
): Promise<Link> {
  const restored = await parts.db.transaction(async (tx) => {
    const link = await q.lockDeletedLink(tx, { id, user: caller.id })
    if (link === undefined) throw notFound('no deleted link has this id')
    if (!link.is_owner && caller.role !== 'admin') {
      throw forbidden('this link is not yours to restore; ask one of its owners')
    }
    const { slug, deletion } = link
    await refuseLoop(tx, parts.ownHosts, caller, link)
    if ((await q.restoreLink(tx, { deletion })) === undefined) throw slugTaken()
    await writeHiddenTags(tx, [slug])
    await writeWords(tx, [link])
    await writeTexts(tx, [slug])
    await countTags(tx, [], [link])
    const change = { action: 'restored', detail: {} }
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, ...change })
    await linkQueries.announceLinks(tx, { slugs: [slug] })
    const note = { service: 'links', action: 'link restore', subject: slug } as const
    await noteChange(tx, actor, note)
    return linkAfter(tx, id)
  })
  parts.forget(restored.slug)
  return restored
}
