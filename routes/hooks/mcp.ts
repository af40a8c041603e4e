import type { Context } from '../../kernel/http/context.ts'
import { postMcp } from '../../kernel/mcp/post.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { authorize, createUseRecorder } from '../../services/hooks/endpoints.ts'
import { createToolServers } from '../../services/hooks/tools/server.ts'
import type { HooksRoutes } from './endpoint.ts'

/**
 * `POST /mcp/{endpoint}` (decisions.md section 3, Tool protocol). The token is checked before the
 * body is read: a stranger does not learn which endpoints exist.
 */
export function mcpRoute({ hooks, version }: HooksRoutes): Route {
  const { registry, clock } = hooks
  const serverOf = createToolServers(hooks, version)
  const recordUse = createUseRecorder(hooks.db, hooks.log)
  /** Ends what still runs for a token when the token is revoked. */
  const valid = new Map<Buffer, AbortController>()

  registry.onChange(() => {
    for (const [tokenHash, controller] of valid) {
      if (registry.endpointOf(tokenHash) !== undefined) continue
      valid.delete(tokenHash)
      controller.abort()
    }
  })

  function signalOf(tokenHash: Buffer): AbortSignal {
    const known = [...valid].find(([hash]) => hash.equals(tokenHash))?.[1]
    const controller = known ?? new AbortController()
    if (known === undefined) valid.set(tokenHash, controller)
    return controller.signal
  }

  async function handle(context: Context): Promise<Reply> {
    const { authorization } = context.headers
    const endpoint = authorize(registry, context.params['endpoint'] ?? '', authorization)
    recordUse(endpoint.name, context.receivedAt)
    const signal = signalOf(endpoint.token_hash)
    return postMcp(serverOf(endpoint), context, { clock, signal })
  }

  return { method: 'POST', path: '/mcp/:endpoint', access: 'strict', handle }
}
