import type { Database } from '../../../db/client.ts'
import { deletedQueries as q } from '../../../db/links/names/deleted.ts'
import { historyQueries } from '../../../db/links/names/history.ts'
import type { Link } from '../../../db/links/names/links.ts'
import { forbidden, notFound } from '../../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../../audit.ts'
import { linkAfter, type LinkParts } from './links/links.ts'
import { refuseLoop } from './links/loop.ts'
import { conflictOf } from './links/new.ts'
import { writeTexts } from './lists/texts.ts'
import { countTags, writeHiddenTags } from './tags.ts'
import { writeWords } from './lists/words.ts'
import type { Caller } from '../people/users/groups.ts'
import { announce, forgetLinks } from './aliases/names.ts'

/** How long a deleted link can be restored. */
export const RESTORE_DAYS = 30

/** The deleted links that a user may restore: those that the user owned, and all for admins. */
export function listDeletedLinks(
  db: Database,
  caller: Caller,
  slice: { before: number; limit: number },
) {
  return q.listDeletedLinks(db, { users: caller.role === 'admin' ? null : caller.ids, ...slice })
}

/**
 * Puts a deleted link back with its owners, shares, tags, history and clicks. Throws 404, then 403,
 * and 409 when another link has one of its names by now. Its url may lead back to itself by now.
 */
export async function restoreLink(
  { actor, ...parts }: LinkParts & ChangeTools,
  caller: Caller,
  id: string,
  at: Date,
): Promise<Link> {
  const restored = await parts.db.transaction(async (tx) => {
    const link = await q.lockDeletedLink(tx, { id, users: caller.ids })
    if (link === undefined) throw notFound('no deleted link has this id')
    if (!link.is_owner && caller.role !== 'admin') {
      throw forbidden('this link is not yours to restore; ask one of its owners')
    }
    const { slug, deletion } = link
    await refuseLoop(tx, parts.ownHosts, caller, link)
    if ((await q.restoreLink(tx, { deletion })) === undefined) throw await conflictOf(tx, slug)
    await writeHiddenTags(tx, [slug])
    await writeWords(tx, [link])
    await writeTexts(tx, [slug])
    await countTags(tx, [], [link])
    const change = { action: 'restored', detail: {} }
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, ...change })
    await announce(tx, link)
    const note = { service: 'links', action: 'link restore', subject: slug } as const
    await noteChange(tx, actor, note)
    return linkAfter(tx, id)
  })
  forgetLinks(parts, restored)
  return restored
}
