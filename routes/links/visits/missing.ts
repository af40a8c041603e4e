import * as Type from '../../../kernel/schema.ts'
import { MissingSlug } from '../../../db/links/visits/missing.ts'
import { missingView } from '../../../html/links/visits/missing.ts'
import { listMissing, MISSING_DAYS } from '../../../services/links/visits/missing.ts'
import { admin, signedIn, token } from '../access.ts'
import { api, page, shortLinks } from '../kit.ts'

const schema = Type.Object({ missing_slugs: Type.Array(MissingSlug) })

/** What visitors asked for and no link has: for admins only, as people mistype what is private. */
export const missingEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/admin/missing-slugs',
    access: admin(token('full', 'read')),
    id: 'listMissingSlugs',
    tag: 'Admin',
    summary: `List the slugs without a link that were asked for most in ${MISSING_DAYS} days.`,
    returns: { description: 'At most 100, the one that was asked for most first', schema },
    async answer({ app: { links }, now }) {
      return { missing_slugs: [...(await listMissing(links.db, now))] }
    },
  }),

  page({
    path: '/-/admin/missing',
    access: admin(signedIn),
    async answer({ app, now }) {
      const slugs = await listMissing(app.links.db, now)
      return missingView(slugs, MISSING_DAYS, shortLinks(app))
    },
  }),
]
