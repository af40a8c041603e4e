import * as Type from '../../../kernel/schema.ts'
import { tagView } from '../../../html/links/lists.ts'
import { tagsView } from '../../../html/links/names/tags.ts'
import type { Call } from '../../../kernel/http/declaration.ts'
import { ListQuery, NO_FILTER } from '../../../services/links/names/lists/filter.ts'
import { checkTag, listTagLinks, listTags } from '../../../services/links/names/tags.ts'
import { signedIn, token } from '../access.ts'
import { api, page, type LinksRoutes } from '../kit.ts'
import { listPage } from '../lists.ts'
import { linkList, nextAddress, tagList, type PageQuery } from '../paging.ts'
import type { Caller } from '../../../services/links/people/users/groups.ts'

/** The query of a tag's page. */
const TagQuery = Type.Object({
  ...Type.Pick(ListQuery, ['q', 'visibility', 'cursor']).properties,
  ...Type.Pick(linkList.query, ['limit']).properties,
})

const tagParams = { slug: Type.String() }

type ListCall = Call<LinksRoutes, Caller, unknown, PageQuery>

/** The tags of links that the caller may see, and the links of a tag. */
export const tagEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/tags',
    access: token('full', 'read'),
    id: 'listTags',
    tag: 'Tags',
    summary: 'List the tags of links that the caller may see, with how many such links each has.',
    query: tagList.query,
    returns: tagList.returns,
    answer: readTags,
  }),

  api({
    method: 'GET',
    path: '/api/v1/tags/:slug/links',
    access: token('full', 'read'),
    id: 'listTagLinks',
    tag: 'Tags',
    summary: 'List the links with a tag that the caller may see.',
    params: tagParams,
    query: linkList.query,
    returns: linkList.returns,
    answer: ({ app: { links }, caller, params: { slug }, query }) =>
      linkList.read(query, (slice) => listTagLinks(links.db, caller, slug, slice)),
  }),

  page({
    path: '/-/tags',
    access: signedIn,
    query: tagList.query,
    async answer(call) {
      const { tags, next_cursor } = await readTags(call)
      return tagsView(tags, nextAddress(call.context, next_cursor))
    },
  }),

  page({
    path: '/-/tags/:slug',
    access: signedIn,
    params: tagParams,
    query: TagQuery,
    async answer({ app, caller, params: { slug }, query, context }) {
      const { cursor, limit, q, visibility } = query
      await checkTag(app.links.db, caller, slug)
      const filter = { ...NO_FILTER, q, visibility, tag: slug }
      const search = { filter, visitor: caller, among: 'all' } as const
      const found = await listPage(app, context, search, { cursor, limit })
      return tagView(slug, { ...search, ...found, path: `/-/tags/${slug}`, pageOf: slug })
    },
  }),
]

function readTags({ app: { links }, caller, query }: ListCall) {
  return tagList.read(query, (slice) => listTags(links.db, caller, slice))
}
