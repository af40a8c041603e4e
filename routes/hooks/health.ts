import { unavailable } from '../../kernel/fault.ts'
import { jsonReply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { readHealth } from '../../services/hooks/health.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /healthz` (hooks.md section 4): 200 Health, or a 503 problem without the database. */
export function healthRoute({ hooks, version }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    async handle(context) {
      const health = await readHealth(hooks.db, hooks.queue.broker, hooks.readStatus, version)
      if (health.status !== 'error') return jsonReply(health)
      return hooksFault(unavailable('The database is out of reach.'), context)
    },
  }
}
