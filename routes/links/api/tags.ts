import Type from 'typebox'
import { Link, Tag } from '../../../db/links/rows.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { isRefusal } from '../../../services/links/refusal.ts'
import { linksTagged, tagsFor } from '../../../services/links/tags.ts'
import type { LinksRoutes } from '../options.ts'
import { endpoint } from './endpoint.ts'
import { page, PageQuery, pageOf, readPage } from './page.ts'

/** `/tags` and `/tags/{slug}/links`. */
export function tagOperations(options: LinksRoutes): readonly Operation[] {
  const { db } = options.links
  const tag = 'Tags'
  return [
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/tags', id: 'listTags', tag },
      summary: 'List the tags of links that the caller may see, with how many such links each has.',
      query: PageQuery,
      replies: { 200: { description: 'A page of tags', schema: pageOf('tags', Tag) } },
      refusals: [400],
      async answer({ context, caller }) {
        const asked = readPage(context, 'tags')
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows = await tagsFor(db, caller, after, limit + 1)
        return jsonReply(page('tags', rows, limit, ({ slug }) => slug))
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/tags/:slug/links', id: 'listTagLinks', tag },
      summary: 'List the links with a tag that the caller may see.',
      params: { slug: Type.String() },
      query: PageQuery,
      replies: { 200: { description: 'A page of links', schema: pageOf('links', Link) } },
      refusals: [400, 404],
      async answer({ context, caller, param }) {
        const asked = readPage(context, 'links')
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows = await linksTagged(db, caller, param('slug'), after, limit + 1)
        if (isRefusal(rows)) return rows
        return jsonReply(page('links', rows, limit, ({ slug }) => slug))
      },
    }),
  ]
}
