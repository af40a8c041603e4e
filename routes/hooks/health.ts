import { unavailable } from '../../kernel/fault.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import { Health, readHealth } from '../../services/hooks/health.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /healthz` (hooks.md section 4): 200 Health, or a 503 problem without the database. */
export function healthRoute({ hooks, version }: HooksRoutes): Operation {
  return {
    ...{ method: 'GET', path: '/healthz', access: 'open', id: 'getHealth', tag: 'Health' },
    summary: 'Tell whether webhooks come in, and what is impaired.',
    needsToken: false,
    replies: { 200: { description: 'They come in', schema: Health } },
    refusals: [503],
    async handle(context) {
      const health = await readHealth(hooks.db, hooks.queue.broker, hooks.readStatus, version)
      if (health.status !== 'error') return jsonReply(health)
      return hooksFault(unavailable('The database is out of reach.'), context)
    },
  }
}
