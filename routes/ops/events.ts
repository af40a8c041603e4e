import * as Type from '../../kernel/schema.ts'
import { Event, eventQueries as q } from '../../db/ops/events.ts'
import { eventsView } from '../../html/ops/events.ts'
import { MAX_COUNT } from '../../html/parts.ts'
import { page } from './kit.ts'
import { Filter, listApi, paging, pagingByTime, readPageAfter, type Key } from './paging.ts'

const filters = { level: Filter, service: Filter }

/** What sessions found (ops.md section 4; decisions.md section 5, Dashboard). */
export const eventEndpoints = [
  page({
    path: '/events',
    query: Type.Object({ ...pagingByTime(100), ...filters }),
    async answer({ app: { ops }, query }) {
      const [listed, { count }] = await Promise.all([
        readPageAfter('/events', query, keyOf, ({ after, ...asked }) =>
          q.pageEvents(ops.db, { ...asked, at: new Date(after.rank), id: after.id }),
        ),
        q.countEvents(ops.db, { ...query, limit: MAX_COUNT + 1 }),
      ])
      return eventsView({ ...query, ...listed, count })
    },
  }),

  listApi('Events', {
    summary: 'List events, newest first; filters combine.',
    row: Event,
    query: Type.Object({ ...paging(100), ...filters }),
    list: ({ app: { ops }, query }) => q.listEvents(ops.db, { ...query, session: null }),
  }),
]

function keyOf({ created_at, id }: Event): Key {
  return { rank: created_at.getTime(), id }
}
