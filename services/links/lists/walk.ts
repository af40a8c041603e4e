import type { Database } from '../../../db/client.ts'
import type { Link } from '../../../db/links/links.ts'
import type { ListedLink, ListOrder } from '../../../db/links/lists.ts'
import { transferQueries } from '../../../db/links/transfer.ts'
import type { Caller } from '../users/groups.ts'
import { endOf } from '../links/lifecycle.ts'
import { searchLinks, type ListPosition, type SearchTools } from './lists.ts'

/** Whether visits of a link have ended, and why. */
export const LINK_STATES = ['active', 'archived', 'expired', 'used_up'] as const
export type LinkState = (typeof LINK_STATES)[number]

/** Which links are wanted; what is undefined or '' leaves none out. */
export interface WantedLinks {
  search: string
  tag: string
  /** The e-mail address of an owner. */
  owner: string | undefined
  state: LinkState | undefined
  sort: ListOrder
}

/** A link with what a list says of it beside its fields. */
export interface WalkedLink {
  link: Link
  clicks: number
  state: LinkState
}

/** Links that are read at once. */
const PAGE = 200

/** All links that a visitor may see and that are wanted, in parts: they may not fit into memory. */
export async function* walkLinks(
  tools: SearchTools,
  visitor: Caller,
  { search, tag, owner, state, sort }: WantedLinks,
  now: Date,
): AsyncGenerator<readonly WalkedLink[]> {
  // The search takes the address for a part of one: other owners are left out below.
  const q = owner === undefined ? search : `owner:${owner} ${search}`
  const filter = { q, tag, visibility: '', role: '', sort } as const
  let from: ListPosition | undefined
  do {
    const page = await searchLinks(tools, { filter, visitor, among: 'all' }, from, PAGE)
    const walked = await withFields(tools.db, page.links, now)
    yield walked.filter(({ link, state: present }) => {
      const isOwned = owner === undefined || link.owners.some(({ email }) => email === owner)
      return isOwned && (state === undefined || state === present)
    })
    from = page.next ?? undefined
  } while (from !== undefined)
}

/** Listed links with all of their fields, without those that were deleted meanwhile. */
async function withFields(
  db: Database,
  listed: readonly ListedLink[],
  now: Date,
): Promise<readonly WalkedLink[]> {
  const slugs = listed.map(({ slug }) => slug)
  const links = await transferQueries.findLinksBySlugs(db, { slugs, limit: slugs.length })
  const bySlug = new Map(links.map((link) => [link.slug, link]))
  return listed.flatMap(({ slug, clicks }) => {
    const link = bySlug.get(slug)
    return link === undefined ? [] : [{ link, clicks, state: stateOf({ ...link, clicks }, now) }]
  })
}

export function stateOf(link: Parameters<typeof endOf>[0], now: Date): LinkState {
  const end = endOf(link, now)
  return end === 'used up' ? 'used_up' : (end ?? 'active')
}
