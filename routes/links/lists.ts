import type { ListedLink } from '../../db/links/names/lists.ts'
import { LIST_PATHS, linksListView } from '../../html/links/lists.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import type { Context } from '../../kernel/http/context.ts'
import { brokenOf } from '../../services/links/visits/health/health.ts'
import { endOf } from '../../services/links/names/links/lifecycle.ts'
import { mayChange } from '../../services/links/names/links/links.ts'
import {
  cursorAt,
  ListQuery,
  NO_FILTER,
  type ListPosition,
} from '../../services/links/names/lists/filter.ts'
import { trendsOf, UNUSED_DAYS } from '../../services/links/visits/stats.ts'
import {
  countLinks,
  searchLinks,
  type LinkSearch,
} from '../../services/links/names/lists/lists.ts'
import type { Caller } from '../../services/links/people/users/groups.ts'
import { ownersForOperator } from '../../services/links/people/users/operator.ts'
import { signedIn } from './access.ts'
import { page, shortLinks, type LinksRoutes } from './kit.ts'
import { nextAddress } from './paging.ts'

const ROWS = 50

/** `/-/`: the visitor's links; `/-/all`: all that the visitor may see (decisions.md section 4). */
export const listEndpoints = (['mine', 'all'] as const).map((among) =>
  page({
    path: LIST_PATHS[among],
    access: signedIn,
    query: ListQuery,
    async answer({ app, caller, query, context }) {
      const { cursor, ...asked } = query
      const filter = { ...NO_FILTER, ...asked }
      const search = { filter, visitor: caller, among }
      const found = await listPage(app, context, search, { cursor, limit: ROWS })
      const isEmpty = found.links.length === 0
      const others = isEmpty ? await ownersForOperator(app.links.db, caller) : []
      return linksListView({ ...search, ...found, others, path: LIST_PATHS[among] })
    },
  }),
)

/** A page of a list, for its view. */
export async function listPage(
  app: LinksRoutes,
  context: Context,
  search: LinkSearch,
  { cursor, limit }: { cursor: ListPosition | undefined; limit: number },
) {
  const { db } = app.links
  const short = shortLinks(app)
  const tools = { db, short, now: context.receivedAt }
  const found = await searchLinks(tools, search, cursor, limit)
  const { next, links } = found
  const counted = cursor === undefined ? await countLinks(db, search, MAX_COUNT + 1) : undefined
  // A search that ended on its first page has found all there is.
  const all = counted ?? (cursor === undefined && next === null ? links.length : undefined)
  const ends = new Map(links.map((link) => [link.slug, endOf(link, context.receivedAt)]))
  // What was found before checks were turned off may be over.
  const slugs = app.links.checkInterval === undefined ? [] : links.map(({ slug }) => slug)
  const broken = await brokenOf(db, slugs)
  return {
    ...found,
    count: all ?? null,
    next: nextAddress(context, cursorAt(next)),
    ends,
    broken,
    trends: await trendsFor(app, search.visitor, links, context.receivedAt),
    unusedDays: UNUSED_DAYS,
    short,
  }
}

/** The visits of the last days of links, for those who may see statistics of them. */
function trendsFor(
  { links: { db } }: LinksRoutes,
  visitor: Caller,
  links: readonly ListedLink[],
  now: Date,
) {
  const measurable = links.filter((link) => mayChange(link, visitor))
  return trendsOf(
    db,
    measurable.map(({ id }) => id),
    now,
  )
}
