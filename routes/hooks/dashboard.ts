import { destinationQueries } from '../../db/hooks/send/destinations.ts'
import { UNKNOWN_PROVIDER } from '../../db/hooks/receive/rejections.ts'
import { dashboardPage, statusView, type StatusView } from '../../html/hooks/dashboard.ts'
import { PROGRAM_NAME } from '../../kernel/assets.ts'
import { Unavailable, unavailable } from '../../kernel/fault.ts'
import { anyone } from '../../kernel/http/endpoint.ts'
import { listNewest } from '../../services/hooks/log/events/events.ts'
import { withPreviews } from '../../services/hooks/log/events/previews.ts'
import { statsOf } from '../../services/hooks/log/stats.ts'
import { Health, readHealth } from '../../services/hooks/log/status.ts'
import { api, page, type HooksRoutes } from './kit.ts'

const NEWEST = 10

/** `/` and `/healthz` (hooks.md section 4), and the part of `/` that follows the status. */
export const dashboardEndpoints = [
  page({
    path: '/',
    async answer({ app }) {
      const { db, clock } = app.hooks
      // Before the events are read: the stream goes on from here, and nothing falls in between.
      const position = await app.hooks.stream.newest()
      const [shown, events, stats] = await Promise.all([
        readShown(app),
        listNewest(db, NEWEST).then((events) => withPreviews(db, events)),
        statsOf(db, clock.now()),
      ])
      if (shown.status.db === 'error') throw new Unavailable('dashboard: no status')
      const view = {
        ...shown,
        program: PROGRAM_NAME,
        unknown: UNKNOWN_PROVIDER,
        position,
        events,
        stats,
      }
      return { page: () => dashboardPage(view) }
    },
  }),

  // Without the database, too: the open page then says that it is out of reach.
  page({ path: '/status', answer: async ({ app }) => statusView(await readShown(app)) }),

  api({
    method: 'GET',
    path: '/healthz',
    access: { ...anyone, guard: 'open' },
    id: 'getHealth',
    tag: 'Health',
    summary: 'Tell whether webhooks come in, and what is impaired.',
    returns: { description: 'They come in', schema: Health },
    async answer({ app: { hooks, version } }) {
      const health = await readHealth(hooks, hooks.queue.broker, version)
      if (health.status === 'error') throw unavailable('The database is out of reach.')
      return health
    },
  }),
]

async function readShown({ hooks, baseUrl }: HooksRoutes): Promise<StatusView> {
  const status = await hooks.readStatus()
  const failing = status.db === 'ok' ? await destinationQueries.listFailing(hooks.db, {}) : []
  return { baseUrl: baseUrl(), status, failing }
}
