import { LIST_PATHS, linksListView } from '../../html/links/lists.ts'
import { encodeCursor } from '../../kernel/text.ts'
import { forbidden } from '../../kernel/fault.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { ListQuery, searchLinks } from '../../services/links/lists.ts'
import { signedIn } from './access.ts'
import { page, shortLinks } from './endpoint.ts'
import { nextAddress } from './paging.ts'

const ROWS = 50

/** `/-/`: the visitor's links; `/-/all`: all that the visitor may see (decisions.md section 4). */
export const listEndpoints = (['mine', 'all'] as const).map((among) =>
  page({
    path: LIST_PATHS[among],
    access: signedIn,
    query: ListQuery,
    async answer({ app, caller, query, context }) {
      const { cursor, ...filter } = query
      // The time of the reply would tell another site what is in links that are not public.
      if (filter.q + filter.tag !== '' && isForeignLoad(context.headers)) {
        throw forbidden('a page of another site may not search here; follow a link')
      }
      const { db, clock } = app.links
      const search = { filter, visitor: caller, among }
      const found = await searchLinks(db, clock, search, cursor, ROWS)
      const after = found.next && encodeCursor([found.next.part, found.next.after])
      const next = nextAddress(context, after)
      return linksListView({ ...search, ...found, next, short: shortLinks(app) })
    },
  }),
)
