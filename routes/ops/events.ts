import Type from 'typebox'
import { Event, eventQueries as q } from '../../db/ops/events.ts'
import { eventsView } from '../../html/ops/events.ts'
import { Filter, listApi, page, paging, readPage } from './endpoint.ts'

const EventQuery = Type.Object({ ...paging(100), level: Filter, service: Filter })

/** What sessions found (ops.md section 4; decisions.md section 5, Dashboard). */
export const eventEndpoints = [
  page({
    path: '/events',
    query: EventQuery,
    async answer({ app: { ops }, query }) {
      const listed = await readPage('/events', query, (asked) =>
        q.listEvents(ops.db, { ...asked, session: null }),
      )
      return eventsView({ ...query, ...listed })
    },
  }),

  listApi('Events', {
    summary: 'List events, newest first; filters combine.',
    row: Event,
    query: EventQuery,
    list: ({ app: { ops }, query }) => q.listEvents(ops.db, { ...query, session: null }),
  }),
]
