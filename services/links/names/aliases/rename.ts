import { aliasQueries as q } from '../../../../db/links/names/aliases.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import type { Link } from '../../../../db/links/names/links.ts'
import type { Precondition } from '../../../../kernel/http/headers.ts'
import { MAX_ALIASES, tooManyAliases } from '../links/input.ts'
import { changeLink, checkVersion, linkAfter, type LinkParts } from '../links/links.ts'
import { refuseLoop } from '../links/loop.ts'
import type { Caller } from '../../people/users/groups.ts'
import { writeTexts } from '../lists/texts.ts'
import { writeWords } from '../lists/words.ts'
import { announce, forgetLinks, namesOf, saveNames } from './names.ts'

/**
 * Gives a link another slug, which may be one of its aliases. The former one becomes an alias, so
 * it leads on. Throws 409 when another link has the new one.
 */
export async function renameLink(
  parts: LinkParts,
  caller: Caller,
  { id, slug }: Pick<Link, 'id' | 'slug'>,
  at: Date,
  precondition?: Precondition,
): Promise<Link> {
  const renamed = await changeLink(parts.db, caller, id, async (tx, link) => {
    checkVersion(link, precondition)
    if (slug === link.slug) return linkAfter(tx, id)
    const aliases = namesOf(link).filter((name) => name !== slug)
    if (aliases.length > MAX_ALIASES) throw tooManyAliases()
    const changed = { ...link, slug, aliases }
    await refuseLoop(tx, parts.ownHosts, caller, changed)
    await saveNames(tx, id, changed)
    await q.renameLink(tx, { link: id, slug, at })
    await writeWords(tx, [changed])
    await writeTexts(tx, [slug])
    const change = { action: 'renamed', detail: { slug: [link.slug, slug] } }
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, ...change })
    await announce(tx, changed)
    return linkAfter(tx, id)
  })
  forgetLinks(parts, renamed)
  return renamed
}
