import { sendersPage } from '../../html/hooks/schemes.ts'
import { wrongMethod } from '../../kernel/fault.ts'
import type { Context } from '../../kernel/http/context.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Match, Route } from '../../kernel/http/router.ts'
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

const GENERIC = /^\/webhooks\/generic\/([a-z0-9][a-z0-9_-]{0,63})$/

/**
 * Finds the `GET` or `HEAD` of a receiver by which its sender checks a new address. Undefined for
 * all other providers, whose path answers POST alone.
 */
export function addressChecks({ hooks }: HooksRoutes) {
  const answer = (context: Context): Reply => {
    const found = answerUnsigned(checkOf(context.path), context)
    if (found === undefined) throw wrongMethod('POST')
    return handshakeReply(found)
  }
  const route: Route = {
    method: 'GET',
    path: '/webhooks/generic/:name',
    access: 'open',
    handle: answer,
  }

  /** The check of a provider that may deliver. */
  function checkOf(path: string) {
    const [, name] = GENERIC.exec(path) ?? []
    const row = name === undefined ? undefined : hooks.registry.provider(`generic:${name}`)
    return row && mayDeliver(row, hooks.secrets) ? schemeOf(row)?.handshake : undefined
  }

  return (path: string, method: string): Match | undefined => {
    const isCheck = method === 'GET' || method === 'HEAD'
    if (!isCheck || checkOf(path) === undefined) return undefined
    return { kind: 'route', route, params: {} }
  }
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
