import Type from 'typebox'
import { listLinks } from '../../db/links/links.ts'
import { Link } from '../../db/links/rows.ts'
import { allLinksFragment, allLinksPage } from '../../html/links/all-links.ts'
import { withDefault } from '../../kernel/validate.ts'
import { linksByPrefix } from '../../services/links/lists.ts'
import { admin, signedIn, token } from './access.ts'
import { api, page } from './endpoint.ts'
import { shortLinks } from './options.ts'
import { nextAddress, pageOf, pageQuery, toPage } from './paging.ts'

const PATH = '/-/admin/links'

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
    returns: { description: 'A page of links', schema: pageOf('links', Link) },
    async answer({ app: { links }, query: { limit, cursor = '' } }) {
      const rows = await listLinks(links.db, cursor, limit + 1)
      const found = toPage('links', rows, limit, ({ slug }) => slug)
      return { links: found.shown, next_cursor: found.cursor }
    },
  }),

  page({
    path: PATH,
    access: admin(signedIn),
    query: Type.Object({ ...pageQuery('links').properties, q: withDefault(Type.String(), '') }),
    async answer({ app, caller, query: { limit, cursor = '', q }, context }) {
      const prefix = q.trim()
      const { db } = app.links
      const rows = await linksByPrefix(db, prefix.toLowerCase(), cursor, limit + 1)
      const found = toPage('links', rows, limit, ({ slug }) => slug)
      const next = nextAddress(PATH, context.search, found.cursor)
      const view = { viewer: caller, prefix, links: found.shown, next, short: shortLinks(app) }
      return { page: () => allLinksPage(view), fragment: () => allLinksFragment(view) }
    },
  }),
]
