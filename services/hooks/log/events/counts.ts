import type { Database } from '../../../../db/client.ts'
import { eventQueries as q, type EventSummary } from '../../../../db/hooks/log/events.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { idRange, isFiltered, testedFilter, type EventsPage } from './events.ts'
import { searchOf, type EventQuery } from './filter.ts'

/** The events of a filter, counted and over time. */
export interface EventCount {
  count: number
  /** Whether there are more than were counted. */
  isMore: boolean
  /** When the counted ones were received, newest first. */
  times: readonly Date[]
}

/** More events are not counted: a page takes as long with a million of them. */
const MAX_COUNTED = 1_000

/**
 * Counts the events of which a first page is known. Those that are found only by reading payloads
 * are counted on that page alone.
 */
export async function countEvents(
  db: Database,
  clock: Clock,
  query: EventQuery,
  { events, next_cursor }: EventsPage,
): Promise<EventCount> {
  const times = events.map(({ received_at }: EventSummary) => received_at)
  const onPage = { count: events.length, isMore: next_cursor !== null, times }
  if (next_cursor === null) return onPage
  const filter = searchOf(query)
  if ((await testedFilter(db, filter, MAX_COUNTED)) !== undefined) return onPage
  const { provider, event_type, type_like } = filter
  const range = await idRange(db, query, clock.now())
  const wanted = { ...range, limit: MAX_COUNTED + 1 }
  const found = isFiltered(filter)
    ? await q.listTimes(db, { ...wanted, provider, event_type, type_like })
    : await q.listUnfilteredTimes(db, wanted)
  // A type that was meant in another case is not found here.
  if (found.length <= events.length) return onPage
  const counted = found.slice(0, MAX_COUNTED).map(({ received_at }) => received_at)
  return { count: counted.length, isMore: found.length > MAX_COUNTED, times: counted }
}
