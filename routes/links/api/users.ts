import Type from 'typebox'
import { listLinks } from '../../../db/links/links.ts'
import { Link, Role, User } from '../../../db/links/rows.ts'
import { listUsers } from '../../../db/links/users.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { refusal } from '../../../services/links/refusal.ts'
import { changeRole, isRole } from '../../../services/links/users.ts'
import type { LinksRoutes } from '../options.ts'
import { bodyOf, endpoint, reply, textOf, UuidParam } from './endpoint.ts'
import { page, PageQuery, pageOf, readPage } from './page.ts'

/** `/users/me` and everything under `/admin`. */
export function userOperations(options: LinksRoutes): readonly Operation[] {
  const { db } = options.links
  const tag = 'Admin'
  return [
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/users/me', id: 'getProfile', tag: 'Users' },
      summary: "Get the caller's own profile.",
      creates: true,
      replies: { 200: { description: 'The profile', schema: User } },
      async answer({ caller: { id, email, display_name, role, created_at } }) {
        return jsonReply({ id, email, display_name, role, created_at })
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/admin/users', id: 'listUsers', tag, admin: true },
      summary: 'List all users by e-mail address.',
      query: PageQuery,
      replies: { 200: { description: 'A page of users', schema: pageOf('users', User) } },
      refusals: [400],
      async answer({ context }) {
        const asked = readPage(context, 'users')
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows = await listUsers(db, after, limit + 1)
        return jsonReply(page('users', rows, limit, ({ email }) => email))
      },
    }),
    endpoint(options, {
      ...{ method: 'PUT', path: '/api/v1/admin/users/:id/role', id: 'setRole', tag, admin: true },
      summary: 'Make a user an admin, or no longer one; the last admin stays one.',
      params: { id: UuidParam },
      body: Type.Object({ role: Role }),
      replies: { 200: { description: 'The user as it is now', schema: User } },
      refusals: [409, 413, 415],
      async answer(call) {
        const body = await bodyOf(call)
        if ('status' in body) return body
        const role = textOf(body.value, 'role')
        if (typeof role !== 'string') return role
        if (!isRole(role)) return refusal('INVALID_ROLE', 'role must be user or admin', 'role')
        return reply(await changeRole(db, call.param('id'), role))
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/admin/links', id: 'listAllLinks', tag, admin: true },
      summary: 'List all links by slug.',
      query: PageQuery,
      replies: { 200: { description: 'A page of links', schema: pageOf('links', Link) } },
      refusals: [400],
      async answer({ context }) {
        const asked = readPage(context, 'links')
        if ('status' in asked) return asked
        const { after, limit } = asked
        const rows = await listLinks(db, after, limit + 1)
        return jsonReply(page('links', rows, limit, ({ slug }) => slug))
      },
    }),
  ]
}
