import { sendersPage } from '../../html/hooks/schemes.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import { listSenders } from '../../services/hooks/schemes/describe.ts'
import type { PlainAnswer } from '../../services/hooks/schemes/handshakes.ts'
import { page } from './kit.ts'

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

/**
 * What strangers or operators chose is sent as text or data alone, never as a page of this origin.
 */
export function plainReply({ status, type, body, headers }: PlainAnswer): Reply {
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
