import type { ListedLink } from '../../../db/links/lists.ts'
import type { User } from '../../../db/links/users.ts'
import { completeUrl, isTarget } from '../links/target.ts'
import { searchLinks, type SearchTools } from './lists.ts'

/** Links of a search that are compared: an address that many links contain has more. */
const COMPARED = 200

/**
 * The links to an address that a visitor may see, at most `limit`, by slug. Scheme, capitals of the
 * host, a slash at the end and the fragment make no difference.
 */
export async function linksTo(
  tools: SearchTools,
  visitor: User,
  text: string,
  limit: number,
): Promise<readonly ListedLink[]> {
  const url = completeUrl(text)
  if (!isTarget(url)) return []
  const wanted = sameForm(url)
  const filter = { q: wanted, tag: '', visibility: '', role: '', sort: '' } as const
  const search = { filter, visitor, among: 'all' } as const
  const { links } = await searchLinks(tools, search, undefined, COMPARED)
  return links.filter((link) => sameForm(link.url) === wanted).slice(0, limit)
}

/** What addresses that lead to the same page have in common. */
function sameForm(url: string): string {
  const { host, pathname, search } = new URL(url)
  return `${host}${pathname.replace(/\/$/, '')}${search}`
}
