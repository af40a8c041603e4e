import type { Database } from '../../db/client.ts'
import { listEvents, NEWEST_POSITION, type EventFilter } from '../../db/hooks/events.ts'
import type { EventSummary, Position } from '../../db/hooks/rows.ts'
import {
  findIdBelow,
  readsPayloads,
  searchEvents,
  searchWindowEnd,
  type PayloadFilter,
} from '../../db/hooks/search.ts'
import { type Clock, pause } from '../../kernel/time.ts'
import { createSearchSlot, type SearchSlot } from './search-slot.ts'

/** A page of events, newest first. */
export interface EventsPage {
  readonly events: readonly EventSummary[]
  /** Where the next page begins, or null when there is nothing below. */
  readonly next: Position | null
  /** A search that looked long enough stops here; what is older was not looked at yet. */
  readonly searchedTo: Date | null
}

/** Events that one step of a search looks through, and how long a page may search. */
const STEP = 2_000
const SEARCH_MS = 1_500
/** How long a step waits for the slot. */
const SLOT_MS = 5_000
/** Each database's slot for searches, so that many leave room for what is stored. */
const slots = new WeakMap<Database, SearchSlot>()
/** What a search that is late is told. */
export const TOO_MANY_SEARCHES = 'Too many searches at once; try again shortly.'
const OLDEST: Position = { received_at: new Date(0), id: 0 }

/**
 * A page of the log: by its indexes, or, when the payload counts, by looking through the events in
 * steps for a bounded time. A search may end with few events and a `next` to go on from. An asker who is
 * `gone` loses its place among the searches. `late` when others don't let it begin.
 */
export async function findEvents(
  db: Database,
  clock: Clock,
  filter: EventFilter,
  payload: PayloadFilter,
  limit: number,
  asker: { gone(): AbortSignal },
): Promise<EventsPage | 'late'> {
  if (!readsPayloads(payload)) {
    const rows = await listEvents(db, filter, limit + 1)
    return { ...pageOf(rows, limit), searchedTo: null }
  }
  const gone = asker.gone()
  const until = clock.elapsed() + SEARCH_MS
  const found: EventSummary[] = []
  const start = filter.before ?? NEWEST_POSITION
  let below = start
  // Ids and times are not in one order: below the time of this id there may be more of those wanted.
  let since = filter.sinceId
  for (;;) {
    const looked = await inSlot(db, gone, async () => {
      const end = await searchWindowEnd(db, below, STEP)
      const room = limit + 1 - found.length
      const matching = await searchEvents(db, below, end ?? OLDEST, filter, payload, room)
      if (end === undefined || since === null) return { end, matching, left: since }
      return { end, matching, left: await findIdBelow(db, since, end) }
    })
    if (looked === 'gone') return { events: found, next: null, searchedTo: null }
    if (looked === 'late') {
      if (below === start) return 'late'
      return { events: found, next: below, searchedTo: below.received_at }
    }
    const { end, matching, left } = looked
    found.push(...matching)
    const exhausted =
      end === undefined ||
      left === undefined ||
      (filter.sinceTime !== null && end.received_at < filter.sinceTime)
    if (found.length > limit || exhausted) return { ...pageOf(found, limit), searchedTo: null }
    below = end
    since = left
    if (clock.elapsed() >= until) return { events: found, next: end, searchedTo: end.received_at }
  }
}

/** Runs a step when those that were asked for before it have ended, unless that takes too long. */
async function inSlot<T extends object>(
  db: Database,
  gone: AbortSignal,
  step: () => Promise<T>,
): Promise<T | 'gone' | 'late'> {
  const slot = slots.get(db) ?? createSearchSlot()
  slots.set(db, slot)
  const { free, release } = slot.enter()
  const waiting = new AbortController()
  const late = pause(SLOT_MS, AbortSignal.any([gone, waiting.signal]))
  try {
    const isFree = await Promise.race([free.then(() => true), late.then(() => false)])
    if (gone.aborted) return 'gone'
    if (!isFree) return 'late'
    return await step()
  } finally {
    waiting.abort()
    release()
  }
}

/** One row more than the page holds tells that there is a next page. */
function pageOf(rows: readonly EventSummary[], limit: number): Pick<EventsPage, 'events' | 'next'> {
  const events = rows.slice(0, limit)
  return { events, next: rows.length > limit ? (events.at(-1) ?? null) : null }
}
