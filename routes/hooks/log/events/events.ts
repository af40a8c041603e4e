import { eventQueries as q } from '../../../../db/hooks/log/events.ts'
import type { EventView } from '../../../../html/hooks/event.ts'
import { logFragment, logPage } from '../../../../html/hooks/log/events/list.ts'
import { Fault } from '../../../../kernel/fault.ts'
import { wantsFragment, type Context } from '../../../../kernel/http/context.ts'
import type { View } from '../../../../kernel/http/view.ts'
import { countEvents } from '../../../../services/hooks/log/events/counts.ts'
import { EventQuery, filterOf, LogQuery } from '../../../../services/hooks/log/events/filter.ts'
import { addressOf, filterOfPage } from '../../../../services/hooks/log/events/log-address.ts'
import { EventList, findEvents } from '../../../../services/hooks/log/events/events.ts'
import { withPreviews } from '../../../../services/hooks/log/events/previews.ts'
import { listSearches } from '../../../../services/hooks/log/searches.ts'
import { reader } from '../../access.ts'
import { api, page, type HooksRoutes } from '../../kit.ts'
import { rejectionsView } from './rejected.ts'
import { readEvent } from '../../event.ts'
import { refuseForeignSearch } from './foreign-search.ts'
import { readList } from './list.ts'

/** Event types that the filter of the log offers. */
const SUGGESTED_TYPES = 200

/** The log (hooks.md section 4), and the same for programs. */
export const logEndpoints = [
  page({
    path: '/log',
    query: LogQuery,
    async answer({ app, query, context }) {
      const filter = filterOfPage(query, app.hooks.clock.now())
      refuseForeignSearch(filter, context)
      return query.rejected === '1'
        ? rejectionsView(app, filter, context)
        : logView(app, filter, context)
    },
  }),

  api({
    method: 'GET',
    path: '/api/v1/events',
    access: reader,
    id: 'listEvents',
    tag: 'Events',
    summary: 'List events, newest first, without their payloads.',
    description:
      'Go on with next_cursor as cursor; it is null on the last page. With text, json, header or ' +
      'verified a call looks through events for about two seconds: its page may then have few ' +
      'events or none, and a next_cursor all the same. Without a token a search by text, json ' +
      'or header needs HX-Request: true.',
    query: EventQuery,
    returns: { description: 'A page of events', schema: EventList },
    async answer({ app: { hooks }, caller, query, context }) {
      refuseForeignSearch(query, context, caller)
      const { events, next_cursor } = await findEvents(hooks.db, hooks.clock, query, context)
      return { events, next_cursor }
    },
  }),
]

async function logView(app: HooksRoutes, query: LogQuery, context: Context): Promise<View> {
  const { db, clock } = app.hooks
  // Before the events are read: the stream brings those that come in between. A fragment is for a
  // page that knows from its stream what the rows can't miss.
  const newest = wantsFragment(context) ? query.above : await app.hooks.stream.newest()
  const found = await findEvents(db, clock, query, context)
  const { events, next_cursor, searchedTo } = found
  const isFirst = query.cursor === '' && query.above === 0
  const view = {
    events: await withPreviews(db, events, filterOf(query).text),
    position: Math.max(newest, events[0]?.id ?? 0),
    open: query.open,
    searchedTo,
    counted: isFirst ? await countEvents(db, clock, query, found) : undefined,
    types: isFirst ? await suggestedTypes(app, query) : [],
    // The script asks for new rows alone.
    searches: query.above === 0 ? await listSearches(db) : [],
    query: addressOf(query),
    ...(await readList(db, query, context, next_cursor)),
  }
  return {
    page: async () => logPage(view, await readOpened(app, query.open)),
    fragment: () => logFragment(view),
  }
}

async function suggestedTypes(
  { hooks }: HooksRoutes,
  query: LogQuery,
): Promise<readonly string[]> {
  const { provider } = filterOf(query)
  const types = await q.listTypes(hooks.db, { provider, limit: SUGGESTED_TYPES })
  return types.map(({ event_type }) => event_type)
}

/** The event beside the log; undefined without one, and after retention removed it. */
async function readOpened(app: HooksRoutes, id: number): Promise<EventView | undefined> {
  return id === 0 ? undefined : readEvent(app, id).catch(undefinedIfRemoved)
}

function undefinedIfRemoved(error: unknown): undefined {
  if (!(error instanceof Fault) || error.status !== 404) throw error
}
