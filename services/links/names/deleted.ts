import type { Database, Executor } from '../../../db/client.ts'
import { deletedQueries as q } from '../../../db/links/names/deleted.ts'
import { historyQueries } from '../../../db/links/names/history.ts'
import type { Link } from '../../../db/links/names/links.ts'
import { forbidden, notFound, type Fault } from '../../../kernel/fault.ts'
import { linksFault } from '../faults.ts'
import { noteChange, type ChangeTools } from '../../audit.ts'
import { differences, linkAfter, type LinkParts } from './links/links.ts'
import { refuseLoop } from './links/loop.ts'
import { takenOf } from './links/new.ts'
import { writeTexts } from './lists/texts.ts'
import { countTags, writeHiddenTags } from './tags.ts'
import { writeWords } from './lists/words.ts'
import type { Caller } from '../people/users/groups.ts'
import { announce, forgetLinks, namesOf, type Named } from './aliases/names.ts'

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

/** The names with which a deleted link comes back. */
interface RestoredNames {
  /** Replaces the former slug; undefined to keep it. */
  slug: string | undefined
  /** Whether names that other links have by now are left out. */
  without_taken: boolean
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
  wanted: RestoredNames,
): Promise<Link> {
  const restored = await parts.db.transaction(async (tx) => {
    await q.lockMoves(tx, {})
    const link = await q.lockDeletedLink(tx, { id, users: caller.ids })
    if (link === undefined) throw notFound('no deleted link has this id')
    if (!link.is_owner && caller.role !== 'admin') {
      throw forbidden('this link is not yours to restore; ask one of its owners')
    }
    const named = { ...link, ...(await freeNamesOf(tx, link, wanted)) }
    const { slug, deletion } = named
    await refuseLoop(tx, parts.ownHosts, caller, named)
    const names = namesOf(named)
    // Another link may have taken a name since it was looked for.
    if ((await q.restoreLink(tx, { deletion, slug, names })) === undefined) throw taken(names)
    await writeHiddenTags(tx, [slug])
    await writeWords(tx, [named])
    await writeTexts(tx, [slug])
    await countTags(tx, [], [named])
    const detail = differences(
      { slug: link.slug, aliases: link.aliases },
      { slug, aliases: named.aliases },
    )
    const change = { action: 'restored', detail }
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, ...change })
    await announce(tx, named)
    const note = { service: 'links', action: 'link restore', subject: slug } as const
    await noteChange(tx, actor, note)
    return linkAfter(tx, id)
  })
  forgetLinks(parts, restored)
  return restored
}

/** The names of a deleted link that are used again; the first one that is left is its slug. */
async function freeNamesOf(
  tx: Executor,
  link: Named,
  { slug: other, without_taken }: RestoredNames,
): Promise<Named> {
  const names = other === undefined ? namesOf(link) : [other, ...link.aliases]
  const all = await takenOf(tx, names)
  const free = names.filter((name) => !all.has(name))
  const [slug, ...aliases] = without_taken ? free : names
  if (slug === undefined || (!without_taken && all.size > 0)) throw taken([...all].toSorted())
  return { slug, aliases: aliases.filter((alias) => alias !== slug).toSorted() }
}

function taken(names: readonly string[]): Fault {
  const what = names.length === 1 ? 'the name' : 'the names'
  return linksFault(
    'SLUG_CONFLICT',
    `another link has ${what} ${names.join(', ')}; restore the link without, or under another name`,
    'slug',
  )
}
