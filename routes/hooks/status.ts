import { unavailable } from '../../kernel/fault.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { jsonReply } from '../../kernel/http/reply.ts'
import { Health, readHealth } from '../../services/hooks/status.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /healthz` (hooks.md section 4): 200 Health, or a 503 problem without the database. */
export function healthRoute({ hooks, version }: HooksRoutes): Operation {
  return {
    ...{ method: 'GET', path: '/healthz', access: 'open', id: 'getHealth', tag: 'Health' },
    summary: 'Tell whether webhooks come in, and what is impaired.',
    needsToken: false,
    replies: { 200: { description: 'They come in', schema: Health } },
    refusals: [503],
    async handle() {
      const health = await readHealth(hooks.db, hooks.queue.broker, hooks.readStatus, version)
      if (health.status === 'error') throw unavailable('The database is out of reach.')
      return jsonReply(health)
    },
  }
}
