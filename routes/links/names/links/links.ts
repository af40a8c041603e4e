import * as Type from '../../../../kernel/schema.ts'
import { Link } from '../../../../db/links/names/links.ts'
import { deletePage } from '../../../../html/links/names/links/links.ts'
import type { Call } from '../../../../kernel/http/declaration.ts'
import { entityTag, preconditionOf, type Precondition } from '../../../../kernel/http/headers.ts'
import { RESTORE_DAYS } from '../../../../services/links/names/deleted.ts'
import { LinkUpdate } from '../../../../services/links/names/links/input.ts'
import { refusePastExpiry } from '../../../../services/links/names/links/lifecycle.ts'
import {
  deleteLink,
  linkFor,
  plainLink,
  replaceLink,
  versionOf,
} from '../../../../services/links/names/links/links.ts'
import { cursorAt, LinksQuery } from '../../../../services/links/names/lists/filter.ts'
import { findLinks } from '../../../../services/links/names/lists/lists.ts'
import { signedIn, token } from '../../access.ts'
import { action, api, Id, page, shortLinks, type LinksRoutes } from '../../kit.ts'
import { linkList } from '../../paging.ts'
import type { Caller } from '../../../../services/links/people/users/groups.ts'

const tag = 'Links'
const params = { id: Id }

/** A call about one link. */
type LinkCall = Pick<Call<LinksRoutes, Caller, { id: string }>, 'app' | 'caller' | 'params'>

/** The headers of a change. */
export const changeHeaders = Type.Object({
  'If-Match': Type.Optional(
    Type.String({
      description: 'ETag of the version to change. Without it, the link is changed as it is.',
    }),
  ),
})

/** `/links` and `/links/{id}` (links.md section 4), and the pages of a link. */
export const linkEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/links',
    access: token('full', 'read'),
    id: 'listLinks',
    tag,
    summary: "List or search the caller's own and co-owned links; admins get all.",
    query: Type.Object({ ...linkList.query.properties, ...LinksQuery.properties }),
    returns: linkList.returns,
    async answer({ app, caller, query, now }) {
      const { cursor, limit, ...asked } = query
      const tools = { db: app.links.db, short: shortLinks(app), now }
      const { links, next } = await findLinks(tools, caller, asked, cursor, limit)
      return { links: [...links], next_cursor: cursorAt(next) }
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/links/:id',
    access: token('full', 'read'),
    id: 'getLink',
    tag,
    summary: 'Get a link that the caller owns, co-owns or was given to read.',
    params,
    returns: linkReply('The link'),
    answer: async (call) => plainLink(await readableLink(call)),
  }),

  api({
    method: 'PUT',
    path: '/api/v1/links/:id',
    access: token('full'),
    id: 'replaceLink',
    tag,
    summary:
      'Replace what may change of a link; without title, description or tags, these are cleared.',
    params,
    headers: changeHeaders,
    find: changeableLink,
    body: LinkUpdate,
    // A slug that differs is ignored by contract.
    replaces: { current: ({ found }) => plainLink(found), mayDiffer: ['slug', 'updated_at'] },
    returns: linkReply('The link as it is now'),
    refuses: [409, 412, 500],
    async answer({ app: { links }, caller, params: { id }, found, body, now, context }) {
      refusePastExpiry(body, now, found)
      return replaceLink(links, caller, id, body, now, preconditionOf(context.headers))
    },
  }),

  ...action({
    params,
    act: ({ app: { links }, caller, actor, params: { id }, now, context }) =>
      deleteLink({ ...links, actor }, caller, id, now, preconditionOf(context.headers)),
    api: {
      method: 'DELETE',
      path: '/api/v1/links/:id',
      access: token('full'),
      id: 'deleteLink',
      tag,
      summary: `Remove a link; its slug is free again. It can be restored for ${RESTORE_DAYS} days.`,
      headers: changeHeaders,
      returns: { description: 'It is gone' },
      refuses: [412],
    },
    form: {
      path: '/-/links/:id/delete',
      access: signedIn,
      answer: () => ({ location: '/-/', done: ['deleted', 'the link'] }),
    },
  }),

  page({
    path: '/-/links/:id/delete',
    access: signedIn,
    params,
    find: changeableLink,
    answer: ({ app, found }) => ({
      page: () => deletePage(found, RESTORE_DAYS, shortLinks(app)),
    }),
  }),
]

/** The link of a call; throws 404 or 403 when the caller may not read it. */
export function readableLink({ app, caller, params }: LinkCall) {
  return linkFor(app.links.db, params.id, caller, 'read')
}

/** The link of a call; throws 404 or 403 when the caller may not change it. */
export function changeableLink({ app, caller, params }: LinkCall) {
  return linkFor(app.links.db, params.id, caller, 'change')
}

/** The version that a form was shown with; programs that post the form may leave it out. */
export function shownVersion(version: string | undefined): Precondition | undefined {
  return version === undefined ? undefined : (current) => current === version
}

/** A link as a reply, with its entity tag. */
export function linkReply(description: string) {
  const etag = Type.String({ description: 'Another one after each change, for If-Match.' })
  return {
    description,
    schema: Link,
    headers: Type.Object({ ETag: etag }),
    headersOf: (link: Link) => ({ etag: entityTag(versionOf(link)) }),
  }
}
