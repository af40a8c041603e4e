import { eventQueries } from '../../db/hooks/events.ts'
import { providerQueries } from '../../db/hooks/providers.ts'
import { rejectionQueries } from '../../db/hooks/rejections.ts'
import { dashboardPage } from '../../html/hooks/dashboard.ts'
import { PROGRAM_NAME } from '../../kernel/assets.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { listNewest } from '../../services/hooks/events.ts'
import { recentSince } from '../../services/hooks/providers.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { page } from './endpoint.ts'

const NEWEST = 10

/** `GET /` (hooks.md section 4). */
export const dashboardEndpoints = [
  page({
    path: '/',
    access: anyone,
    async answer({ app: { hooks, baseUrl } }) {
      const { db, clock } = hooks
      // Before the events are read: the stream goes on from here, so that nothing falls in between.
      const { newest: position } = await eventQueries.streamBounds(db, { replayed: 0 })
      const [status, events, activity, rejections] = await Promise.all([
        hooks.readStatus(),
        listNewest(db, NEWEST),
        providerQueries.listActivity(db, { since: recentSince(clock.now()) }),
        rejectionQueries.listRejectionCounts(db, {}),
      ])
      if (status.db === 'error') throw new Unavailable('dashboard: no status')
      const program = { program: PROGRAM_NAME, baseUrl: baseUrl() }
      const view = { ...program, position, status, events, activity, rejections }
      return { page: () => dashboardPage(view), fragment: () => dashboardPage(view) }
    },
  }),
]
