import type { User } from '../../../db/links/rows.ts'
import { listTokens } from '../../../db/links/tokens.ts'
import { tokensFragment, tokensPage, type TokensView } from '../../../html/links/tokens.ts'
import type { Context } from '../../../kernel/http/context.ts'
import { htmlReply, type Reply } from '../../../kernel/http/reply.ts'
import type { Route } from '../../../kernel/http/router.ts'
import { STATUS } from '../../../services/links/faults.ts'
import { isRefusal } from '../../../services/links/refusal.ts'
import {
  createToken,
  endOf,
  readTokenRequest,
  revokeToken,
  type MadeToken,
} from '../../../services/links/tokens.ts'
import { readForm } from '../../form.ts'
import { sentence } from '../../page-answers.ts'
import type { LinksRoutes } from '../options.ts'
import { fragmentOrPage, pageRoute } from './page.ts'
import { showsForm } from './shows-form.ts'

/** `/-/tokens` and its forms: the visitor's own tokens, never another's. */
export function tokenPages(options: LinksRoutes): readonly Route[] {
  const { db, random } = options.links

  async function view(
    visitor: User,
    { receivedAt: now }: Context,
    changes: Partial<TokensView> = {},
  ): Promise<TokensView> {
    const tokens = await listTokens(db, visitor.id)
    return { tokens, now, made: null, refused: null, ...changes }
  }

  /** The fragment, or the page around it for a browser without script. */
  async function answer(
    context: Context,
    visitor: User,
    changes: Partial<TokensView>,
    status = 200,
  ): Promise<Reply> {
    const shown = await view(visitor, context, changes)
    return fragmentOrPage(
      context,
      () => tokensPage(visitor, shown),
      () => tokensFragment(shown),
      status,
    )
  }

  const path = '/-/tokens'
  return [
    pageRoute(options, {
      ...{ method: 'GET', path },
      answer: async ({ context, visitor }) =>
        htmlReply(tokensPage(visitor, await view(visitor, context))),
    }),
    pageRoute(options, {
      ...{ method: 'POST', path },
      async answer({ context, visitor }) {
        const form = await readForm(context)
        if ('status' in form) return form
        const typed = {
          name: form.get('name') ?? '',
          scope: form.get('scope') ?? 'full',
          expires: form.get('expires') ?? '',
        }
        const { receivedAt } = context
        const { name, scope } = typed
        const expires_at = typed.expires === '' ? null : endOf(typed.expires, receivedAt)
        const request = readTokenRequest({ name, scope, expires_at }, receivedAt)
        const token = isRefusal(request)
          ? request
          : await createToken(db, random, visitor.id, request, receivedAt)
        if (isRefusal(token)) {
          if (!showsForm(context)) return token
          const { field, message } = token
          const said = sentence(message.replace('expires_at', 'expires'))
          const refused = { ...typed, field, message: said }
          return answer(context, visitor, { refused }, STATUS[token.refused])
        }
        const made = { name: token.name, token: token.token, curl: curlLine(options, token) }
        return answer(context, visitor, { made })
      },
    }),
    pageRoute(options, {
      ...{ method: 'POST', path: `${path}/:id/revoke` },
      async answer({ context, visitor, param }) {
        const refusal = await revokeToken(db, param('id'), visitor.id)
        return refusal ?? answer(context, visitor, {})
      },
    }),
  ]
}

/** A command that shows that the token works, within its scope. */
function curlLine({ baseUrl }: LinksRoutes, { token, scope }: MadeToken): string {
  const authorization = `-H 'Authorization: Bearer ${token}'`
  if (scope !== 'create') return `curl ${authorization} '${baseUrl()}/api/v1/links'`
  return (
    `curl ${authorization} -H 'Content-Type: application/json' \\\n` +
    `  -d '{"slug": "docs", "url": "https://example.com/docs"}' '${baseUrl()}/api/v1/links'`
  )
}
