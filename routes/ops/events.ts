import Type from 'typebox'
import { Event, eventQueries as q } from '../../db/ops/events.ts'
import { eventsView } from '../../html/ops/events.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import { page } from './kit.ts'
import { Filter, listApi, paging, readPage } from './paging.ts'

const EventQuery = Type.Object({ ...paging(100), level: Filter, service: Filter })

/** What sessions found (ops.md section 4; decisions.md section 5, Dashboard). */
export const eventEndpoints = [
  page({
    path: '/events',
    query: EventQuery,
    async answer({ app: { ops }, query }) {
      const [listed, { count }] = await Promise.all([
        readPage('/events', query, (asked) => q.listEvents(ops.db, { ...asked, session: null })),
        q.countEvents(ops.db, { ...query, limit: MAX_COUNT + 1 }),
      ])
      return eventsView({ ...query, ...listed, count })
    },
  }),

  listApi('Events', {
    summary: 'List events, newest first; filters combine.',
    row: Event,
    query: EventQuery,
    list: ({ app: { ops }, query }) => q.listEvents(ops.db, { ...query, session: null }),
  }),
]
