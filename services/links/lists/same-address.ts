import type { ListedLink } from '../../../db/links/lists.ts'
import type { Caller } from '../users/groups.ts'
import { completeUrl, isTarget } from '../links/target.ts'
import { searchLinks, type SearchTools } from './lists.ts'

/** Links of a search that are compared: an address that many links contain has more. */
const COMPARED = 200

/** The links to an address that a visitor may see, at most `limit`, by slug. */
export async function linksTo(
  tools: SearchTools,
  visitor: Caller,
  text: string,
  limit: number,
): Promise<readonly ListedLink[]> {
  const url = completeUrl(text)
  if (!isTarget(url)) return []
  const { host, pathname, search: query } = new URL(url)
  const q = `${host}${pathname.replace(/\/$/, '')}${query}`
  const filter = { q, tag: '', visibility: '', role: '', sort: '' } as const
  const search = { filter, visitor, among: 'all' } as const
  const { links } = await searchLinks(tools, search, undefined, COMPARED)
  const wanted = comparable(url)
  return links.filter((link) => comparable(link.url) === wanted).slice(0, limit)
}

/**
 * An address as it is compared: in the form of the URL standard. An empty fragment is dropped; any
 * other one counts, because applications keep their pages there.
 */
function comparable(text: string): string {
  const url = new URL(text)
  if (url.hash === '') url.hash = ''
  return url.href
}
