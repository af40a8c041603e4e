import Type from 'typebox'
import { Owner, Share } from '../../../db/links/rows.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { linkFor } from '../../../services/links/links.ts'
import {
  endOwnership,
  giveOwnership,
  ownersOf,
  endShare,
  shareLink,
  sharesOf,
} from '../../../services/links/members.ts'
import { isRefusal } from '../../../services/links/refusal.ts'
import type { LinksRoutes } from '../options.ts'
import { bodyOf, done, endpoint, reply, textOf, UuidParam, type ApiCall } from './endpoint.ts'

const params = { id: UuidParam }
const memberParams = { id: UuidParam, uid: UuidParam }

const EmailBody = Type.Object({
  email: Type.String({ description: 'Address of a known user', examples: ['ann@example.com'] }),
})

/** `/links/{id}/owners` and `/links/{id}/shares`. */
export function memberOperations(options: LinksRoutes): readonly Operation[] {
  const { db } = options.links

  /** The e-mail address in the body of a call whose link the caller may change. */
  async function emailFor(call: ApiCall) {
    const link = await linkFor(db, call.param('id'), call.caller, 'change')
    if (isRefusal(link)) return link
    const body = await bodyOf(call)
    return 'status' in body ? body : textOf(body.value, 'email')
  }

  return [
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/links/:id/owners', id: 'listOwners', tag: 'Owners' },
      summary: 'List the owners of a link, the primary one first.',
      params,
      replies: { 200: { description: 'All owners', schema: Type.Array(Owner) } },
      answer: async ({ caller, param }) => reply(await ownersOf(db, caller, param('id'))),
    }),
    endpoint(options, {
      ...{ method: 'POST', path: '/api/v1/links/:id/owners', id: 'addOwner', tag: 'Owners' },
      summary: 'Make a user a co-owner.',
      params,
      body: EmailBody,
      replies: { 201: { description: 'The new co-owner', schema: Owner } },
      refusals: [409, 413, 415],
      async answer(call) {
        const email = await emailFor(call)
        if (typeof email !== 'string') return email
        const { caller, param, context } = call
        return reply(await giveOwnership(db, caller, param('id'), email, context.receivedAt), 201)
      },
    }),
    endpoint(options, {
      ...{ method: 'DELETE', path: '/api/v1/links/:id/owners/:uid', id: 'removeOwner' },
      ...{ tag: 'Owners', params: memberParams },
      summary: 'Remove a co-owner; the primary owner stays.',
      replies: { 204: { description: 'No owner any more' } },
      async answer({ caller, param, context }) {
        const at = context.receivedAt
        return (await endOwnership(db, caller, param('id'), param('uid'), at)) ?? done()
      },
    }),
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/links/:id/shares', id: 'listShares', tag: 'Shares' },
      summary: 'List with whom a link is shared.',
      params,
      replies: { 200: { description: 'All shares', schema: Type.Array(Share) } },
      answer: async ({ caller, param }) => reply(await sharesOf(db, caller, param('id'))),
    }),
    endpoint(options, {
      ...{ method: 'POST', path: '/api/v1/links/:id/shares', id: 'shareLink', tag: 'Shares' },
      summary: 'Let a user read a link.',
      params,
      body: EmailBody,
      replies: { 201: { description: 'The new share', schema: Share } },
      refusals: [409, 413, 415],
      async answer(call) {
        const email = await emailFor(call)
        if (typeof email !== 'string') return email
        const { caller, param, context } = call
        return reply(await shareLink(db, caller, param('id'), email, context.receivedAt), 201)
      },
    }),
    endpoint(options, {
      ...{ method: 'DELETE', path: '/api/v1/links/:id/shares/:uid', id: 'endShare' },
      ...{ tag: 'Shares', params: memberParams },
      summary: 'End a share.',
      replies: { 204: { description: 'No longer shared' } },
      async answer({ caller, param, context }) {
        const at = context.receivedAt
        return (await endShare(db, caller, param('id'), param('uid'), at)) ?? done()
      },
    }),
  ]
}
