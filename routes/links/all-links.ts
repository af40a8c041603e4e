import Type from 'typebox'
import { Link } from '../../db/links/links.ts'
import { allLinksFragment, allLinksPage } from '../../html/links/all-links.ts'
import { withDefault } from '../../kernel/validate.ts'
import { listAllLinks } from '../../services/links/lists.ts'
import { admin, signedIn, token } from './access.ts'
import { api, page, shortLinks } from './endpoint.ts'
import { nextAddress, pageQuery, pageSchema, readPage } from './paging.ts'

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
      readPage(
        'links',
        query,
        ({ slug }: Link) => slug,
        (after, limit) => listAllLinks(links.db, '', after, limit),
      ),
  }),

  page({
    path: '/-/admin/links',
    access: admin(signedIn),
    query: Type.Object({ ...pageQuery('links').properties, q: withDefault(Type.String(), '') }),
    async answer({ app, caller, query, context }) {
      const prefix = query.q.trim()
      const { links, next_cursor } = await readPage(
        'links',
        query,
        ({ slug }: Link) => slug,
        (after, limit) => listAllLinks(app.links.db, prefix.toLowerCase(), after, limit),
      )
      const next = nextAddress(context, next_cursor)
      const view = { viewer: caller, prefix, links, next, short: shortLinks(app) }
      return { page: () => allLinksPage(view), fragment: () => allLinksFragment(view) }
    },
  }),
]
