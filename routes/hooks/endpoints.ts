import type { Context } from '../../kernel/http/context.ts'
import { postMcp } from '../../kernel/mcp/post.ts'
import type { Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { createToolServers } from '../../services/hooks/endpoints/tools/server.ts'
import type { HooksRoutes } from './kit.ts'

/**
 * `POST /mcp/{endpoint}` (decisions.md section 3, Tool protocol). The token is checked before the
 * body is read: a stranger does not learn which endpoints exist.
 */
export function mcpRoute({ hooks, version }: HooksRoutes): Route {
  const { endpoints, clock } = hooks
  const serverOf = createToolServers(hooks, version)

  async function handle(context: Context): Promise<Reply> {
    const { params, headers, receivedAt } = context
    const name = params['endpoint'] ?? ''
    const endpoint = endpoints.authorize(name, headers.authorization, receivedAt)
    context.actor = { kind: 'token', name }
    const signal = endpoints.signalOf(endpoint)
    return postMcp(serverOf(endpoint), context, { clock, signal })
  }

  return { method: 'POST', path: '/mcp/:endpoint', access: 'strict', handle }
}
