import { listLinks, listOwnLinks } from '../../../db/links/links.ts'
import { Link } from '../../../db/links/rows.ts'
import type { Operation } from '../../../kernel/operation.ts'
import { jsonReply } from '../../../kernel/reply.ts'
import { linkFor, plainLink } from '../../../services/links/access.ts'
import {
  LinkCreation,
  LinkUpdate,
  readLinkInput,
  readSlug,
} from '../../../services/links/link-input.ts'
import { createLink, deleteLink, replaceLink } from '../../../services/links/links.ts'
import { isRefusal } from '../../../services/links/refusal.ts'
import type { LinksRoutes } from '../options.ts'
import { bodyOf, done, endpoint, reply, UuidParam } from './endpoint.ts'
import { page, PageQuery, pageOf, readPage } from './page.ts'

const params = { id: UuidParam }

/** `/links` and `/links/{id}` (links.md section 4). */
export function linkOperations(options: LinksRoutes): readonly Operation[] {
  const { links } = options
  const { db } = links
  const tag = 'Links'
  return [
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/links', id: 'listLinks', tag },
      summary: "List the caller's own and co-owned links by slug; admins get all.",
      query: PageQuery,
      replies: { 200: { description: 'A page of links', schema: pageOf('links', Link) } },
      refusals: [400],
      async answer({ context, caller }) {
        const asked = readPage(context, 'links')
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows =
          caller.role === 'admin'
            ? await listLinks(db, after, limit + 1)
            : await listOwnLinks(db, caller.id, after, limit + 1)
        return jsonReply(page('links', rows, limit, ({ slug }) => slug))
      },
    }),
    endpoint(options, {
      ...{ method: 'POST', path: '/api/v1/links', id: 'createLink', tag },
      summary: 'Make a link; the caller becomes its primary owner.',
      creates: true,
      body: LinkCreation,
      replies: { 201: { description: 'The new link', schema: Link } },
      refusals: [400, 409, 413, 415, 500],
      async answer(call) {
        const body = await bodyOf(call)
        if ('status' in body) return body
        const slug = readSlug(body.value)
        if (isRefusal(slug)) return slug
        const input = readLinkInput(body.value)
        if (isRefusal(input)) return input
        const { receivedAt } = call.context
        return reply(await createLink(links, call.caller, slug, input, receivedAt), 201)
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/links/:id', id: 'getLink', tag, params },
      summary: 'Get a link that the caller owns, co-owns or was given to read.',
      replies: { 200: { description: 'The link', schema: Link } },
      async answer({ caller, param }) {
        const link = await linkFor(db, param('id'), caller, 'read')
        return isRefusal(link) ? link : jsonReply(plainLink(link))
      },
    }),
    endpoint(options, {
      ...{ method: 'PUT', path: '/api/v1/links/:id', id: 'replaceLink', tag, params },
      summary: 'Replace what may change of a link; a slug in the body is ignored.',
      body: LinkUpdate,
      replies: { 200: { description: 'The link as it is now', schema: Link } },
      refusals: [413, 415, 500],
      async answer(call) {
        const { caller, param, context } = call
        const link = await linkFor(db, param('id'), caller, 'change')
        if (isRefusal(link)) return link
        const body = await bodyOf(call)
        if ('status' in body) return body
        const input = readLinkInput(body.value)
        if (isRefusal(input)) return input
        return reply(await replaceLink(links, caller, param('id'), input, context.receivedAt))
      },
    }),
    endpoint(options, {
      ...{ method: 'DELETE', path: '/api/v1/links/:id', id: 'deleteLink', tag, params },
      summary: 'Remove a link; its slug is free again.',
      replies: { 204: { description: 'It is gone' } },
      async answer({ caller, param }) {
        return (await deleteLink(links, caller, param('id'))) ?? done()
      },
    }),
  ]
}
