import Type from 'typebox'
import { sendersPage } from '../../html/hooks/schemes.ts'
import { wrongMethod } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { listSenders } from '../../services/hooks/schemes/describe.ts'
import { answerUnsigned, type Handshake } from '../../services/hooks/schemes/handshakes.ts'
import { schemeOf } from '../../services/hooks/schemes/schemes.ts'
import { mayDeliver } from '../../services/hooks/schemes/secrets.ts'
import { page, type HooksRoutes } from './kit.ts'

/** `/providers/senders`: what is known of senders. */
export const schemeEndpoints = [
  page({
    path: '/providers/senders',
    async answer({ app }) {
      const show = () => sendersPage(listSenders(), app.baseUrl())
      return { page: show, fragment: () => show().body }
    },
  }),
]

/** `GET` of a receiver, by which some senders check a new address. It stores nothing. */
export function addressCheckRoutes(options: HooksRoutes): readonly Operation[] {
  return [
    {
      method: 'GET',
      path: '/webhooks/generic/:name',
      access: 'open',
      tag: 'Receivers',
      needsToken: false,
      id: 'checkGeneric',
      summary: 'Answer a check of the address, of a sender whose scheme asks for it.',
      params: { name: Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$' }) },
      replies: { 200: { description: 'What the sender wants back', schema: Type.String() } },
      refusals: [405],
      handle: (context) => answerCheck(options, context),
    },
  ]
}

/** 405 unless the provider is enabled and its sender checks addresses in this way. */
async function answerCheck({ hooks }: HooksRoutes, context: Context): Promise<Reply> {
  const row = hooks.registry.provider(`generic:${context.params['name'] ?? ''}`)
  const scheme = row && mayDeliver(row, hooks.secrets) ? schemeOf(row) : undefined
  const answer = answerUnsigned(scheme?.handshake, context)
  if (answer === undefined) throw wrongMethod('POST')
  return handshakeReply(answer)
}

/** What a stranger chose is sent as text or JSON alone, never as a page of this origin. */
export function handshakeReply({ status, type, body, headers }: Handshake): Reply {
  return {
    status,
    headers: {
      ...(type !== undefined && { 'content-type': type }),
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'cache-control': 'no-store',
      ...headers,
    },
    body: body ?? null,
  }
}
