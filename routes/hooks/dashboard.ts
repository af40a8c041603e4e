import { eventQueries } from '../../db/hooks/events.ts'
import { UNKNOWN_PROVIDER } from '../../db/hooks/rejections.ts'
import { dashboardPage } from '../../html/hooks/dashboard.ts'
import { PROGRAM_NAME } from '../../kernel/assets.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { listNewest } from '../../services/hooks/events.ts'
import { withPreviews } from '../../services/hooks/previews.ts'
import { statsOf } from '../../services/hooks/stats.ts'
import { namedReasons } from '../../services/hooks/status.ts'
import { page } from './endpoint.ts'

const NEWEST = 10

/** `GET /` (hooks.md section 4). */
export const dashboardEndpoints = [
  page({
    path: '/',
    async answer({ app: { hooks, baseUrl } }) {
      const { db, clock } = hooks
      // Before the events are read: the stream goes on from here, and nothing falls in between.
      const { newest: position } = await eventQueries.streamBounds(db, { replayed: 0 })
      const [status, events, stats] = await Promise.all([
        hooks.readStatus(),
        listNewest(db, NEWEST).then((events) => withPreviews(db, events)),
        statsOf(db, clock.now()),
      ])
      if (status.db === 'error') throw new Unavailable('dashboard: no status')
      const view = {
        baseUrl: baseUrl(),
        program: PROGRAM_NAME,
        unknown: UNKNOWN_PROVIDER,
        position,
        status,
        reasons: namedReasons(status, hooks.registry),
        events,
        stats,
      }
      return { page: () => dashboardPage(view) }
    },
  }),
]
