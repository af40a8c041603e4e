import { allLinksView, LIST_PATHS, linksListView } from '../../html/links/lists.ts'
import { encodeCursor } from '../../kernel/text.ts'
import { forbidden } from '../../kernel/fault.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { ListQuery, searchLinks, listAllLinks } from '../../services/links/lists.ts'
import { signedIn, admin, token } from './access.ts'
import { page, shortLinks, api } from './endpoint.ts'
import { linkList, nextAddress } from './paging.ts'
import Type from 'typebox'
import { withDefault } from '../../kernel/validate.ts'

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

/** The links of all users, for admins only. */
export const allLinksEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/admin/links',
    access: admin(token('full', 'read')),
    id: 'listAllLinks',
    tag: 'Admin',
    summary: 'List all links by slug.',
    query: linkList.query,
    returns: linkList.returns,
    answer: ({ app: { links }, query }) =>
      linkList.read(query, (slice) => listAllLinks(links.db, '', slice)),
  }),

  page({
    path: '/-/admin/links',
    access: admin(signedIn),
    query: Type.Object({ ...linkList.query.properties, q: withDefault(Type.String(), '') }),
    async answer({ app, query, context }) {
      const prefix = query.q.trim()
      const { links, next_cursor } = await linkList.read(query, (slice) =>
        listAllLinks(app.links.db, prefix.toLowerCase(), slice),
      )
      const next = nextAddress(context, next_cursor)
      return allLinksView(prefix, { links, next, short: shortLinks(app) })
    },
  }),
]
