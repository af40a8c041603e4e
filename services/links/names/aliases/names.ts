import type { Executor } from '../../../../db/client.ts'
import { aliasQueries as q } from '../../../../db/links/names/aliases.ts'
import { linkQueries, type Link, type LinkAccess } from '../../../../db/links/names/links.ts'
import { slugTaken } from '../links/new.ts'
import type { Caller } from '../../people/users/groups.ts'

/** A link's slug and its aliases. */
export type Named = Pick<Link, 'slug' | 'aliases'>

/** How many links are read whose name differs in dashes only. */
export const MAX_NAMESAKES = 20

/** All names of a link, each once. */
export function namesOf({ slug, aliases }: Named): readonly string[] {
  return [...new Set([slug, ...aliases])]
}

/** Gives a link these names and no others. Throws the Fault of one that another link has. */
export async function saveNames(tx: Executor, id: string, link: Named): Promise<void> {
  const names = namesOf(link)
  const taken = await q.writeNames(tx, { link: id, names })
  if (taken !== undefined) throw slugTaken(taken.name === link.slug ? 'slug' : 'aliases')
}

/** Tells every instance, once the transaction commits, that links with these names changed. */
export async function announce(tx: Executor, ...links: readonly Named[]): Promise<void> {
  await linkQueries.announceLinks(tx, { slugs: [...new Set(links.flatMap(namesOf))] })
}

/** Drops what this process knows of links. */
export function forgetLinks(
  { forget }: { forget: (name: string) => void },
  ...links: readonly Named[]
): void {
  for (const name of new Set(links.flatMap(namesOf))) forget(name)
}

/** Who looks for a link: a user, a stranger without an id, or a command on this machine. */
type Finder = Pick<Caller, 'role' | 'ids'>

/** Links with a name that differs from this one in dashes only, of those that somebody may find. */
export async function namesakesOf(
  db: Executor,
  name: string,
  finder: Finder,
): Promise<readonly LinkAccess[]> {
  const found: LinkAccess[] = []
  for (const { id } of await q.listNamesakes(db, { name, limit: MAX_NAMESAKES })) {
    const link = await linkQueries.findLink(db, { id, users: finder.ids })
    if (link !== undefined && mayFind(link, finder)) found.push(link)
  }
  return found
}

function mayFind(link: LinkAccess, { role }: Finder): boolean {
  return link.visibility === 'public' || link.is_owner || link.is_recipient || role === 'admin'
}
