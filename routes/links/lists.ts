import { linksListFragment, linksListPage, listPath } from '../../html/links/lists.ts'
import { encodeCursor } from '../../kernel/text.ts'
import { forbidden } from '../../kernel/fault.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { ListQuery, searchLinks, searchOf } from '../../services/links/lists.ts'
import { signedIn } from './access.ts'
import { page, shortLinks } from './endpoint.ts'
import { nextAddress } from './paging.ts'

const ROWS = 50

/** `/-/`: the visitor's links; `/-/all`: all that the visitor may see (decisions.md section 4). */
export const listEndpoints = (['mine', 'all'] as const).map((list) =>
  page({
    path: listPath(list),
    access: signedIn,
    query: ListQuery,
    async answer({ app, caller, query, context }) {
      const { cursor, ...filter } = query
      // The time of the reply would tell another site what is in links that are not public.
      if (filter.q + filter.tag !== '' && isForeignLoad(context.headers)) {
        throw forbidden('a page of another site may not search here; follow a link')
      }
      const { db, clock } = app.links
      const search = searchOf(filter, caller, list)
      const { links, next, searchedTo } = await searchLinks(db, clock, search, cursor, ROWS)
      const view = {
        list,
        filter,
        links,
        searchedTo,
        next: nextAddress(context, next && encodeCursor([next.part, next.after])),
        short: shortLinks(app),
        isAdmin: caller.role === 'admin',
      }
      return {
        page: () => linksListPage(caller, view),
        fragment: () => linksListFragment(view),
      }
    },
  }),
)
