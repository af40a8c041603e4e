import type { Database } from '../../db/client.ts'
import { eventQueries as q, type EventSummary, type Position } from '../../db/hooks/events.ts'
import { unavailable } from '../../kernel/fault.ts'
import { type Clock, pause } from '../../kernel/time.ts'
import {
  filterOf,
  readEventCursor,
  readSince,
  readsPayloads,
  type EventFilter,
  type LogQuery,
  type Since,
} from './event-filter.ts'

/** A page of events, newest first. */
interface EventsPage {
  readonly events: readonly EventSummary[]
  /** Where the next page begins, or null on the last one. */
  readonly next: Position | null
  /** Where a search ran out of time; older events were not searched yet. */
  readonly searchedTo: Date | null
}

/** Events that one step of a search reads at most, and bytes of their payloads. */
const STEP_EVENTS = 2_000
export const STEP_BYTES = 4 * 1024 * 1024
/** Ids that one statement scans. */
const STEP_IDS = 10_000
/** After this time a page ends its search. */
const SEARCH_MS = 1_500
/** How long a step waits for the slot. */
const SLOT_MS = 5_000
/** One slot for each database, so that many searches leave room for storing deliveries. */
const slots = new WeakMap<Database, SearchSlot>()
const NEWEST: Position = { received_at: new Date('9999-12-31T00:00:00Z'), id: 2 ** 53 - 1 }
const OLDEST: Position = { received_at: new Date(0), id: 0 }

/** The newest events. */
export function listNewest(db: Database, limit: number): Promise<readonly EventSummary[]> {
  return q.listEvents(db, { ...below(NEWEST), since_time: null, since_id: null, limit })
}

/**
 * A page of the log: by its indexes or, for a filter on payloads, by reading the events in steps
 * for a bounded time. A search may end with few events and a `next` to continue from. It stops when
 * its client is `gone`, and is refused when it can't begin in time.
 */
export async function findEvents(
  db: Database,
  clock: Clock,
  query: LogQuery,
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const filter = filterOf(query)
  const since = readSince(query.since) ?? { since_time: null, since_id: null }
  const before = readEventCursor(query.cursor) ?? NEWEST
  if (readsPayloads(query)) return search(db, clock, { ...query, filter, since, before }, client)
  const rows = await listPage(db, filter, { ...below(before), ...since, limit: query.limit + 1 })
  return { ...pageOf(rows, query.limit), searchedTo: null }
}

/** Each filter has a query of its own, so that the plan always uses its index. */
function listPage(
  db: Database,
  { provider, event_type }: EventFilter,
  page: Parameters<typeof q.listEvents>[1],
): Promise<readonly EventSummary[]> {
  if (event_type !== null) return q.listEventsOfType(db, { ...page, event_type, provider })
  if (provider !== null) return q.listEventsOfProvider(db, { ...page, provider })
  return q.listEvents(db, page)
}

interface Search {
  readonly filter: EventFilter
  readonly since: Since
  readonly before: Position
  readonly limit: number
}

async function search(
  db: Database,
  clock: Clock,
  { filter, since: { since_time, since_id }, before, limit }: Search,
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const gone = client.gone()
  const until = clock.elapsed() + SEARCH_MS
  const found: EventSummary[] = []
  let position = before
  // Ids and times differ in order: events with higher ids may be older than the event `since_id`.
  let from_id = since_id
  for (;;) {
    const step = await inSlot(db, gone, async () => {
      const start = below(position)
      const size = { rows: STEP_EVENTS, bytes: STEP_BYTES }
      const end = await q.searchWindowEnd(db, { ...start, ...size })
      const { received_at: end_time, id: end_id } = end ?? OLDEST
      const room = { since_time, since_id, limit: limit + 1 - found.length }
      const events = await q.searchEvents(db, { ...start, end_time, end_id, ...filter, ...room })
      if (end === undefined || from_id === null) return { end, events, from_id }
      const next = await q.findIdBelow(db, { from_id, ...below(end), ids: STEP_IDS })
      return { end, events, from_id: next?.id }
    })
    if (step === 'gone') return { events: found, next: null, searchedTo: null }
    if (step === 'late') {
      if (position === before) throw unavailable('Too many searches at once; try again shortly.')
      return { events: found, next: position, searchedTo: position.received_at }
    }
    found.push(...step.events)
    const { end } = step
    const isPast = end !== undefined && since_time !== null && end.received_at < since_time
    if (found.length > limit || end === undefined || step.from_id === undefined || isPast) {
      return { ...pageOf(found, limit), searchedTo: null }
    }
    position = end
    from_id = step.from_id
    if (clock.elapsed() >= until) return { events: found, next: end, searchedTo: end.received_at }
  }
}

/**
 * Runs a step after the steps before it, unless the client goes away or the wait takes too long.
 */
async function inSlot<T extends object>(
  db: Database,
  gone: AbortSignal,
  step: () => Promise<T>,
): Promise<T | 'gone' | 'late'> {
  const slot = slots.get(db) ?? createSearchSlot()
  slots.set(db, slot)
  const { free, release } = slot()
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

/** The query reads one row more than a page: that row shows that there is a next page. */
function pageOf(rows: readonly EventSummary[], limit: number): Pick<EventsPage, 'events' | 'next'> {
  const events = rows.slice(0, limit)
  return { events, next: rows.length > limit ? (events.at(-1) ?? null) : null }
}

function below({ received_at, id }: Position): { before_time: Date; before_id: number } {
  return { before_time: received_at, before_id: id }
}

/** Takes the next place in the queue for the one slot that runs the steps of many searches. */
export type SearchSlot = () => {
  /** Resolves when all places before this one were released. */
  readonly free: Promise<void>
  /** Must be called once, also by a search that gives up. */
  readonly release: () => void
}

export function createSearchSlot(): SearchSlot {
  let last = Promise.resolve()
  return () => {
    const free = last
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    last = free.then(() => released)
    return { free, release }
  }
}
