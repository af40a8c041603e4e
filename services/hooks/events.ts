import type { Static } from 'typebox'
import type { Database } from '../../db/client.ts'
import { eventQueries as q, type EventSummary, type SearchedTo } from '../../db/hooks/events.ts'
import { unavailable } from '../../kernel/fault.ts'
import { type Clock, pause } from '../../kernel/time.ts'
import {
  cursorAt,
  filterOf,
  readCursor,
  readSince,
  readsPayloads,
  type EventQuery,
} from './event-filter.ts'

/** A page of events, newest first. */
interface EventsPage {
  events: readonly EventSummary[]
  /** Null on the last page. */
  next_cursor: string | null
  /** Where a search ran out of time; older events were not searched yet. */
  searchedTo: Date | null
}

/** Events that one step of a search reads at most, and bytes of their payloads. */
const STEP_EVENTS = 2_000
export const STEP_BYTES = 4 * 1024 * 1024
/** After this time a page ends its search. */
const SEARCH_MS = 1_500
/** How long a step waits for the slot. */
const SLOT_MS = 5_000
/** One slot for each database, so that many searches leave room for storing deliveries. */
const slots = new WeakMap<Database, SearchSlot>()

/** The newest events. */
export function listNewest(db: Database, limit: number): Promise<readonly EventSummary[]> {
  return q.listUnfiltered(db, { before: readCursor(''), from: 0, limit })
}

/**
 * A page of the log: by its indexes or, for a filter on payloads, by reading the events in steps
 * for a bounded time. A search may end with few events and a cursor to continue from. It stops
 * when its client is `gone`, and is refused when it can't begin in time.
 */
export async function findEvents(
  db: Database,
  clock: Clock,
  query: EventQuery & { above?: number },
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const since = readSince(query.since) ?? { id: 0 }
  const first = 'id' in since ? since.id : (await q.firstIdSince(db, { since: since.time })).id
  const from = Math.max(first, (query.above ?? 0) + 1)
  if (readsPayloads(query)) return search(db, clock, query, from, client)
  const { limit } = query
  const { provider, event_type } = filterOf(query)
  const range = { before: readCursor(query.cursor), from, limit: limit + 1 }
  const isFiltered = provider !== null || event_type !== null
  const rows = isFiltered
    ? await q.listEvents(db, { ...range, provider, event_type })
    : await q.listUnfiltered(db, range)
  return pageOf(rows, limit)
}

async function search(
  db: Database,
  clock: Clock,
  query: EventQuery,
  from: number,
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const { limit } = query
  const filter = filterOf(query)
  const gone = client.gone()
  const until = clock.elapsed() + SEARCH_MS
  const found: EventSummary[] = []
  let end: Static<typeof SearchedTo> | undefined
  for (;;) {
    const before = end?.id ?? readCursor(query.cursor)
    const wanted = { before, from, limit: limit + 1 - found.length }
    const step = await inSlot(db, gone, () => searchStep(db, filter, wanted))
    if (step === 'gone') return pageOf(found, limit)
    if (step === 'late') {
      if (end === undefined) throw unavailable('Too many searches at once; try again shortly.')
      return searchedPage(found, end)
    }
    found.push(...step.events)
    if (found.length > limit || step.next === undefined) return pageOf(found, limit)
    end = step.next
    if (clock.elapsed() >= until) return searchedPage(found, end)
  }
}

/**
 * One step of a search: the newest events that match, from the id `from` to below `before`, and
 * the row at which the next step begins.
 */
export async function searchStep(
  db: Database,
  { provider, event_type, ...payload }: ReturnType<typeof filterOf>,
  { before, from, limit }: { before: number; from: number; limit: number },
) {
  const range = { provider, event_type, before, from, rows: STEP_EVENTS }
  const next = await q.searchWindowEnd(db, { ...range, bytes: STEP_BYTES })
  const room = { from: next?.id ?? from, limit }
  return { next, events: await q.searchEvents(db, { ...range, ...payload, ...room }) }
}

/**
 * Runs a step after the steps before it, unless the client goes away or the wait takes too long.
 */
async function inSlot<T extends object>(
  db: Database,
  gone: AbortSignal,
  step: () => Promise<T>,
): Promise<T | 'gone' | 'late'> {
  const { free, release } = slots.getOrInsertComputed(db, createSearchSlot)()
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
function pageOf(rows: readonly EventSummary[], limit: number): EventsPage {
  const events = rows.slice(0, limit)
  const last = rows.length > limit ? events.at(-1) : undefined
  return { events, next_cursor: last === undefined ? null : cursorAt(last.id), searchedTo: null }
}

function searchedPage(
  events: readonly EventSummary[],
  { id, received_at }: Static<typeof SearchedTo>,
): EventsPage {
  return { events, next_cursor: cursorAt(id), searchedTo: received_at }
}

/**
 * One slot that runs the steps of many searches. The function takes the next place in the queue:
 * `free` resolves when all places before were released. `release` must be called once, also by a
 * search that gives up.
 */
export function createSearchSlot() {
  let last = Promise.resolve()
  return () => {
    const free = last
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    last = free.then(() => released)
    return { free, release }
  }
}
export type SearchSlot = ReturnType<typeof createSearchSlot>
