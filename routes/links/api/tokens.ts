import Type from 'typebox'
import { Scope, Token } from '../../../db/links/rows.ts'
import { listTokens } from '../../../db/links/tokens.ts'
import { nullable, Timestamp } from '../../../db/rows.ts'
import type { Operation } from '../../../kernel/openapi.ts'
import { jsonReply } from '../../../kernel/http/reply.ts'
import { isRefusal, refusal, type Refusal } from '../../../services/links/refusal.ts'
import { createToken, readTokenRequest, revokeToken } from '../../../services/links/tokens.ts'
import type { LinksRoutes } from '../options.ts'
import { bodyOf, done, endpoint, reply, UuidParam, type ApiCall } from './endpoint.ts'

export const TokenRequest = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 100 }),
    scope: Type.Optional(Scope),
    expires_at: Type.Optional(nullable(Timestamp)),
  },
  { examples: [{ name: 'laptop', scope: 'read', expires_at: null }] },
)
export const MadeToken = Type.Object({
  ...Token.properties,
  token: Type.String({ description: 'Shown this one time' }),
})

/** `/tokens`: the caller's own, by tokens of scope `full` only. */
export function tokenOperations(options: LinksRoutes): readonly Operation[] {
  const { db, random } = options.links
  const tag = 'Tokens'
  return [
    endpoint(options, {
      ...{ method: 'GET', path: '/api/v1/tokens', id: 'listTokens', tag },
      summary: "List the caller's tokens, newest first.",
      replies: {
        200: { description: 'All tokens', schema: Type.Object({ tokens: Type.Array(Token) }) },
      },
      answer: async (call) =>
        refuseLess(call) ?? jsonReply({ tokens: await listTokens(db, call.caller.id) }),
    }),
    endpoint(options, {
      ...{ method: 'POST', path: '/api/v1/tokens', id: 'createToken', tag },
      summary: 'Make a token; its text is shown this one time.',
      body: TokenRequest,
      replies: { 201: { description: 'The new token', schema: MadeToken } },
      refusals: [400, 413, 415],
      async answer(call) {
        const beyond = refuseLess(call)
        if (beyond !== undefined) return beyond
        const body = await bodyOf(call)
        if ('status' in body) return body
        const { receivedAt } = call.context
        const request = readTokenRequest(body.value, receivedAt)
        if (isRefusal(request)) return request
        return reply(await createToken(db, random, call.caller.id, request, receivedAt), 201)
      },
    }),
    endpoint(options, {
      ...{ method: 'DELETE', path: '/api/v1/tokens/:id', id: 'revokeToken', tag },
      summary: 'Revoke a token: it stops to work at once.',
      params: { id: UuidParam },
      replies: { 204: { description: 'It is revoked' } },
      async answer(call) {
        const { caller, param } = call
        return refuseLess(call) ?? (await revokeToken(db, param('id'), caller.id)) ?? done()
      },
    }),
  ]
}

/** A token that may do less must not see or make one that may do more. */
function refuseLess({ caller }: ApiCall): Refusal | undefined {
  if (caller.scope === 'full') return undefined
  return refusal('FORBIDDEN', 'only a token of scope full manages tokens')
}
