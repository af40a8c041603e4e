import Type from 'typebox'
import { listLinks, listOwnLinks } from '../../../db/links/links.ts'
import { Link } from '../../../db/links/rows.ts'
import type { Operation, ReplyDescription } from '../../../kernel/openapi.ts'
import { ifMatches } from '../../../kernel/http/headers.ts'
import { jsonReply, type Reply } from '../../../kernel/http/reply.ts'
import {
  linkFor,
  plainLink,
  createLink,
  deleteLink,
  replaceLink,
  versionOf,
  type Precondition,
} from '../../../services/links/links.ts'
import {
  LinkCreation,
  LinkUpdate,
  readLinkInput,
  readSlug,
} from '../../../services/links/link-input.ts'
import { isRefusal, type Refusal } from '../../../services/links/refusal.ts'
import type { LinksRoutes } from '../options.ts'
import { bodyOf, done, endpoint, UuidParam, type ApiCall } from './endpoint.ts'
import { page, PageQuery, pageOf, readPage } from './page.ts'

const params = { id: UuidParam }

/** What a change of a link may ask for. */
const ChangeHeaders = Type.Object({
  'If-Match': Type.Optional(
    Type.String({
      description: 'ETag of the version to change. Without it, the link is changed as it is.',
    }),
  ),
})

function linkDescription(description: string): ReplyDescription {
  const headers = Type.Object({
    ETag: Type.String({ description: 'Another one after each change, for If-Match.' }),
  })
  return { description, schema: Link, headers }
}

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
      replies: { 201: linkDescription('The new link') },
      refusals: [400, 409, 413, 415, 500],
      async answer(call) {
        const body = await bodyOf(call)
        if ('status' in body) return body
        const slug = readSlug(body.value)
        if (isRefusal(slug)) return slug
        const input = readLinkInput(body.value)
        if (isRefusal(input)) return input
        const { receivedAt } = call.context
        return linkReply(await createLink(links, call.caller, slug, input, receivedAt), 201)
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/links/:id', id: 'getLink', tag, params },
      summary: 'Get a link that the caller owns, co-owns or was given to read.',
      replies: { 200: linkDescription('The link') },
      async answer({ caller, param }) {
        const link = await linkFor(db, param('id'), caller, 'read')
        return linkReply(isRefusal(link) ? link : plainLink(link))
      },
    }),
    endpoint(options, {
      ...{ method: 'PUT', path: '/api/v1/links/:id', id: 'replaceLink', tag, params },
      summary: 'Replace what may change of a link; a slug in the body is ignored.',
      body: LinkUpdate,
      headers: ChangeHeaders,
      replies: { 200: linkDescription('The link as it is now') },
      refusals: [412, 413, 415, 500],
      async answer(call) {
        const { caller, param, context } = call
        const link = await linkFor(db, param('id'), caller, 'change')
        if (isRefusal(link)) return link
        const body = await bodyOf(call)
        if ('status' in body) return body
        const input = readLinkInput(body.value)
        if (isRefusal(input)) return input
        const at = context.receivedAt
        return linkReply(
          await replaceLink(links, caller, param('id'), input, at, preconditionOf(call)),
        )
      },
    }),
    endpoint(options, {
      ...{ method: 'DELETE', path: '/api/v1/links/:id', id: 'deleteLink', tag, params },
      summary: 'Remove a link; its slug is free again.',
      headers: ChangeHeaders,
      replies: { 204: { description: 'It is gone' } },
      refusals: [412],
      async answer(call) {
        const { caller, param } = call
        return (await deleteLink(links, caller, param('id'), preconditionOf(call))) ?? done()
      },
    }),
  ]
}

/** A link with its entity tag. */
function linkReply(result: Link | Refusal, status = 200): Reply | Refusal {
  if (isRefusal(result)) return result
  return jsonReply(result, status, { etag: entityTag(versionOf(result)) })
}

function preconditionOf({ context }: ApiCall): Precondition {
  return (version) => ifMatches(context.headers['if-match'], entityTag(version))
}

function entityTag(version: string): string {
  return `"${version}"`
}
