import Type from 'typebox'
import { Link } from '../../db/links/links.ts'
import { Tag } from '../../db/links/tags.ts'
import type { User } from '../../db/links/users.ts'
import { tagFragment, tagPage, tagsFragment, tagsPage } from '../../html/links/tags.ts'
import type { Call } from '../../kernel/http/endpoint.ts'
import { listTagLinks, listTags } from '../../services/links/tags.ts'
import { signedIn, token } from './access.ts'
import { api, page, shortLinks, type LinksRoutes } from './endpoint.ts'
import { nextAddress, pageQuery, pageSchema, readPage, type PageQuery } from './paging.ts'

const tagParams = { slug: Type.String() }

type ListCall = Call<LinksRoutes, User, unknown, PageQuery>
type TagCall = Call<LinksRoutes, User, { readonly slug: string }, PageQuery>

/** The tags of links that the caller may see, and the links of a tag. */
export const tagEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/tags',
    access: token('full', 'read'),
    id: 'listTags',
    tag: 'Tags',
    summary: 'List the tags of links that the caller may see, with how many such links each has.',
    query: pageQuery('tags'),
    returns: { description: 'A page of tags', schema: pageSchema('tags', Tag) },
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
    query: pageQuery('links'),
    returns: { description: 'A page of links', schema: pageSchema('links', Link) },
    answer: readTagLinks,
  }),

  page({
    path: '/-/tags',
    access: signedIn,
    query: pageQuery('tags'),
    async answer(call) {
      const { tags, next_cursor } = await readTags(call)
      const view = { tags, next: nextAddress(call.context, next_cursor) }
      return { page: () => tagsPage(call.caller, view), fragment: () => tagsFragment(view) }
    },
  }),

  page({
    path: '/-/tags/:slug',
    access: signedIn,
    params: tagParams,
    query: pageQuery('links'),
    async answer(call) {
      const { links, next_cursor } = await readTagLinks(call)
      const view = {
        tag: call.params.slug,
        links,
        next: nextAddress(call.context, next_cursor),
        short: shortLinks(call.app),
        viewer: call.caller,
      }
      return { page: () => tagPage(view), fragment: () => tagFragment(view) }
    },
  }),
]

function readTags({ app: { links }, caller, query }: ListCall) {
  return readPage('tags', query, 'slug', (after, limit) => listTags(links.db, caller, after, limit))
}

function readTagLinks({ app: { links }, caller, params, query }: TagCall) {
  return readPage('links', query, 'slug', (after, limit) =>
    listTagLinks(links.db, caller, params.slug, after, limit),
  )
}
