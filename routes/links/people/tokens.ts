import * as Type from '../../../kernel/schema.ts'
import { Token, tokenQueries } from '../../../db/links/people/tokens.ts'
import type { User } from '../../../db/links/people/users.ts'
import { tokensView, type TokensView } from '../../../html/links/people/tokens.ts'
import { newForm, type View } from '../../../kernel/http/view.ts'
import { clientConfiguration } from '../../../kernel/mcp/server.ts'
import {
  CreatedToken,
  createToken,
  NewToken,
  newestOf,
  newTokenOf,
  revokeToken,
  TokenForm,
} from '../../../services/links/people/tokens/changes.ts'
import { signedIn, token } from '../access.ts'
import { action, api, form, Id, page, type LinksRoutes } from '../kit.ts'

/** API tokens: users manage their own, and of their tokens only those of scope `full` do. */
export const tokenEndpoints = [
  api({
    method: 'GET',
    path: '/api/v1/tokens',
    access: token('full'),
    id: 'listTokens',
    tag: 'Tokens',
    summary: "List the caller's tokens, newest first.",
    returns: { description: 'All tokens', schema: Type.Object({ tokens: Type.Array(Token) }) },
    answer: async ({ app: { links }, caller }) => ({
      tokens: await tokenQueries.listTokens(links.db, { user: caller.id }),
    }),
  }),

  api({
    method: 'POST',
    path: '/api/v1/tokens',
    access: token('full'),
    id: 'createToken',
    tag: 'Tokens',
    summary: 'Create a token; its text is shown only this once.',
    body: NewToken,
    returns: { status: 201, description: 'The new token', schema: CreatedToken },
    answer: ({ app: { links }, caller, actor, body, now }) =>
      createToken({ ...links, actor }, caller, body, now),
  }),

  page({
    path: '/-/tokens',
    access: signedIn,
    answer: (call) => showTokens(call),
  }),

  form({
    path: '/-/tokens',
    access: signedIn,
    body: TokenForm,
    async answer(call) {
      const { app, caller, actor, now } = call
      const request = newTokenOf(call.body, now)
      const tools = { ...app.links, actor }
      const created = await createToken(tools, caller, request, now, call.body.newest)
      const curl = curlFor(created, app.baseUrl())
      const configuration = clientConfiguration(app.baseUrl(), 'links', created.token)
      const view = await showTokens(call, { created: { ...created, curl, configuration } })
      return { ...view, done: ['created', 'the token'] }
    },
    refused: (call, refusedForm) => showTokens(call, { form: refusedForm }),
  }),

  ...action({
    params: { id: Id },
    act: ({ app: { links }, caller, actor, params }) =>
      revokeToken({ ...links, actor }, params.id, caller.id),
    api: {
      method: 'DELETE',
      path: '/api/v1/tokens/:id',
      access: token('full'),
      id: 'revokeToken',
      tag: 'Tokens',
      summary: 'Revoke a token: it stops working at once.',
      returns: { description: 'It is revoked' },
    },
    form: {
      path: '/-/tokens/:id/revoke',
      access: signedIn,
      answer: async (call) => ({ ...(await showTokens(call)), done: ['revoked', 'the token'] }),
    },
  }),
]

async function showTokens(
  { app: { links }, caller, now }: { app: LinksRoutes; caller: User; now: Date },
  state: Partial<TokensView> = {},
): Promise<View> {
  const tokens = await tokenQueries.listTokens(links.db, { user: caller.id })
  const form = newForm(TokenForm, { expires: '90d' })
  const view = tokensView({ tokens, newest: newestOf(tokens), now, form, ...state })
  return state.created === undefined ? { ...view, location: '/-/tokens' } : view
}

/** A command that shows that the token works, within its scope. */
function curlFor({ token, scope }: CreatedToken, baseUrl: string): string {
  const authorization = `-H 'Authorization: Bearer ${token}'`
  if (scope !== 'create') return `curl ${authorization} '${baseUrl}/api/v1/links'`
  return (
    `curl ${authorization} -H 'Content-Type: application/json' \\\n` +
    `  -d '{"slug": "docs", "url": "https://example.com/docs"}' '${baseUrl}/api/v1/links'`
  )
}
