import { listEvents, streamBounds } from '../../db/hooks/events.ts'
import { providerQueries } from '../../db/hooks/providers.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { dashboardPage } from '../../html/hooks/dashboard.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { PROGRAM_NAME } from '../../kernel/assets.ts'
import { htmlReply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { EVERY_EVENT } from '../../services/hooks/log-filter.ts'
import { recentSince } from '../../services/hooks/providers.ts'
import type { HooksRoutes } from './options.ts'

const NEWEST = 10

/** `GET /` (hooks.md section 4). */
export function dashboardRoute({ hooks, baseUrl }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/',
    access: 'guarded',
    async handle() {
      const { db, clock } = hooks
      // Before the events are read: the stream goes on from here, so that nothing falls in between.
      const { newest: position } = await streamBounds(db, 0)
      const [status, events, activity, rejections] = await Promise.all([
        hooks.readStatus(),
        listEvents(db, EVERY_EVENT, NEWEST),
        providerQueries.listActivity(db, { since: recentSince(clock.now()) }),
        rejectionQueries.listRejectionCounts(db, {}),
      ])
      if (status.db === 'error') throw new Unavailable('dashboard: no status')
      const view = {
        baseUrl: baseUrl(),
        program: PROGRAM_NAME,
        position,
        status,
        events,
        activity,
        rejections,
      }
      return htmlReply(dashboardPage(view))
    },
  }
}
