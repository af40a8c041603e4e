import type { Route } from '../../../kernel/http/router.ts'
import { queryOf } from '../../../kernel/http/context.ts'
import { isForeignLoad } from '../../../kernel/net/guard.ts'
import {
  linksListFragment,
  linksListPage,
  listPath,
  type ListName,
} from '../../../html/links/links.ts'
import type { Reply } from '../../../kernel/http/reply.ts'
import { searchLinks, type ListPosition, searchOf } from '../../../services/links/lists.ts'
import { isRefusal, refusal, type Refusal } from '../../../services/links/refusal.ts'
import { pageOrFragment } from '../../page-answers.ts'
import { shortLinks, type LinksRoutes } from '../options.ts'
import { listCursor, readListCursor, readListFilter } from './list-query.ts'
import { pageRoute, type PageCall } from './page.ts'

const ROWS = 50
/** The time of the answer would tell what stands in links that are not for everybody. */
const FOREIGN = refusal('FORBIDDEN', 'a page of another site may not search here; follow a link')

/** `/-/`: the visitor's links; `/-/all`: all that the visitor may see (decisions.md section 4). */
export function listRoutes(options: LinksRoutes): readonly Route[] {
  return (['mine', 'all'] as const).map((list) =>
    pageRoute(options, {
      method: 'GET',
      path: listPath(list),
      answer: (call) => answer(options, list, call),
    }),
  )
}

async function answer(
  options: LinksRoutes,
  list: ListName,
  { context, visitor }: PageCall,
): Promise<Reply | Refusal> {
  const { db, clock } = options.links
  const query = queryOf(context)
  const filter = readListFilter(query)
  if (isRefusal(filter)) return filter
  if (filter.q + filter.tag !== '' && isForeignLoad(context.headers)) return FOREIGN
  const from = readListCursor(query.get('cursor'))
  if (from === undefined) {
    return refusal('BAD_REQUEST', 'cursor is none of this list; start again from the first page')
  }
  const search = searchOf(filter, visitor, list)
  const page = await searchLinks(db, clock, search, from ?? undefined, ROWS)
  const view = {
    list,
    filter,
    links: page.links,
    searchedTo: page.searchedTo,
    next: page.next === null ? null : next(listPath(list), query, page.next),
    short: shortLinks(options),
    isAdmin: visitor.role === 'admin',
  }
  return pageOrFragment(
    context,
    () => linksListPage(visitor, view),
    () => linksListFragment(view),
  )
}

/** The same query, from after a position. */
function next(path: string, query: URLSearchParams, position: ListPosition): string {
  const following = new URLSearchParams(query)
  following.set('cursor', listCursor(position))
  return `${path}?${following.toString()}`
}
