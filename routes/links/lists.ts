import {
  linksListFragment,
  linksListPage,
  listPath,
  allLinksFragment,
  allLinksPage,
} from '../../html/links/lists.ts'
import { encodeCursor } from '../../kernel/text.ts'
import { forbidden } from '../../kernel/fault.ts'
import { isForeignLoad } from '../../kernel/net/guard.ts'
import { ListQuery, searchLinks, listAllLinks } from '../../services/links/lists.ts'
import { signedIn, admin, token } from './access.ts'
import { page, shortLinks, api } from './endpoint.ts'
import { nextAddress, pageQuery, pageSchema, readPage } from './paging.ts'
import Type from 'typebox'
import { Link } from '../../db/links/links.ts'
import { withDefault } from '../../kernel/validate.ts'

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
      const search = { filter, visitor: caller, among: list }
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

/** The links of all users, for admins only. */
export const allLinksEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/admin/links',
    access: admin(token('full', 'read')),
    id: 'listAllLinks',
    tag: 'Admin',
    summary: 'List all links by slug.',
    query: pageQuery('links'),
    returns: { description: 'A page of links', schema: pageSchema('links', Link) },
    answer: ({ app: { links }, query }) =>
      readPage('links', query, 'slug', (after, limit) => listAllLinks(links.db, '', after, limit)),
  }),

  page({
    path: '/-/admin/links',
    access: admin(signedIn),
    query: Type.Object({ ...pageQuery('links').properties, q: withDefault(Type.String(), '') }),
    async answer({ app, caller, query, context }) {
      const prefix = query.q.trim()
      const { links, next_cursor } = await readPage('links', query, 'slug', (after, limit) =>
        listAllLinks(app.links.db, prefix.toLowerCase(), after, limit),
      )
      const next = nextAddress(context, next_cursor)
      const view = { viewer: caller, prefix, links, next, short: shortLinks(app) }
      return { page: () => allLinksPage(view), fragment: () => allLinksFragment(view) }
    },
  }),
]
