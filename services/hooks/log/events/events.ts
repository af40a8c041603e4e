import * as Type from '../../../../kernel/schema.ts'
import type { Static } from '../../../../kernel/schema.ts'
import type { Database } from '../../../../db/client.ts'
import { MAX_KNOWN_TYPES } from '../../../../db/hooks/receive/deliveries.ts'
import {
  eventQueries as q,
  EventSummary,
  type SearchedTo,
} from '../../../../db/hooks/log/events.ts'
import { nullable } from '../../../../db/sql-file.ts'
import { unavailable } from '../../../../kernel/fault.ts'
import { type Clock, pause } from '../../../../kernel/time.ts'
import {
  cursorAt,
  readBound,
  readCursor,
  searchOf,
  type EventQuery,
  type SearchFilter,
} from './filter.ts'

/** A page of events, newest first, as programs get it. */
export const EventList = Type.Object({
  events: Type.Array(EventSummary),
  /** Null on the last page. */
  next_cursor: nullable(Type.String()),
})

export interface EventsPage {
  events: readonly EventSummary[]
  next_cursor: string | null
  /** Where a search ran out of time; older events were not searched yet. */
  searchedTo: Date | null
}

/** The bounds of a step that reads payloads, and of one that reads what stands beside them. */
export const PAYLOAD_STEP = { rows: 2_000, bytes: 1024 * 1024 }
export const STEP = { rows: 10_000, bytes: Number.MAX_SAFE_INTEGER }
/** Of the first step of a search: how many pages of events it reads. */
const FIRST_STEP_PAGES = 4
/** How many times as many events the next step reads, up to the bounds above. */
const STEP_GROWTH = 4
/**
 * Entries of an index that a page may read for a filter with a wildcard: a page's worth for each
 * type that it means, so 200 types for a page of 50 events. Where more types are like it, or more
 * may be than are known, the events are tested one by one.
 */
const MAX_ENTRIES = 10_000
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

/** The newest event of a provider; undefined where none is kept. */
export async function findNewestOf(
  db: Database,
  provider: string,
): Promise<EventSummary | undefined> {
  const all = { event_type: null, type_like: null, before: readCursor(''), from: 0 }
  const [newest] = await q.listEvents(db, { provider, ...all, limit: 1 })
  return newest
}

/**
 * A page of the log: by its indexes or, for filters that no index has, by reading the events in
 * steps for a bounded time. A search may end with few events and a cursor to continue from, also
 * because its client is `gone`. It is refused when it can't begin in time.
 */
export async function findEvents(
  db: Database,
  clock: Clock,
  query: EventQuery & { above?: number },
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const { limit } = query
  const now = clock.now()
  const range = { ...(await idRange(db, query, now)), limit }
  const filter = searchOf(query)
  const find = (wanted: SearchFilter) => findPage(db, clock, wanted, range, client)
  const page = await find(filter)
  const { provider, event_type } = filter
  if (page.events.length > 0 || page.next_cursor !== null || event_type === null) return page
  // No event has exactly this type? Then those are meant that have it in another case.
  const anywhere = { provider, event_type, type_like: null, before: readCursor(''), from: 0 }
  const exact = await q.listEvents(db, { ...anywhere, limit: 1 })
  return exact.length > 0 ? page : find({ ...filter, event_type: null, type_like: event_type })
}

/** The ids that the bounds of a query let in. */
export async function idRange(
  db: Database,
  { since, until, cursor, above = 0 }: EventQuery & { above?: number },
  now: Date,
) {
  const first = await firstId(db, since, now)
  const end = until === '' ? Infinity : await endId(db, until, now)
  return { before: Math.min(readCursor(cursor), end), from: Math.max(first, above + 1) }
}

/** The lowest id that a bound lets in. */
async function firstId(db: Database, since: string, now: Date): Promise<number> {
  const bound = readBound(since, now) ?? { id: 0 }
  return 'id' in bound ? bound.id : (await q.firstIdSince(db, { since: bound.time })).id
}

/** The id above those that an upper bound lets in. */
async function endId(db: Database, until: string, now: Date): Promise<number> {
  const bound = readBound(until, now) ?? { id: Number.MAX_SAFE_INTEGER - 1 }
  return 'id' in bound ? bound.id + 1 : (await q.firstIdSince(db, { since: bound.time })).id
}

/** Ids from `from` to below `before`, and how many of them. */
interface Range {
  before: number
  from: number
  limit: number
}

async function findPage(
  db: Database,
  clock: Clock,
  filter: SearchFilter,
  { limit, ...rest }: Range,
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const range = { ...rest, limit: limit + 1 }
  const { provider, event_type, type_like } = filter
  const tested = await testedFilter(db, filter, limit)
  if (tested !== undefined) return search(db, clock, tested, { ...rest, limit }, client)
  const rows = isFiltered(filter)
    ? await q.listEvents(db, { ...range, provider, event_type, type_like })
    : await q.listUnfiltered(db, range)
  return pageOf(rows, limit)
}

/** Whether an index is needed beside that of the ids. */
export function isFiltered({ provider, event_type, type_like }: SearchFilter): boolean {
  return provider !== null || event_type !== null || type_like !== null
}

/** What a step tests beside the index that chooses its events. */
type TestedFilter = SearchFilter & { test_type: string | null }

/** The filter where events must be tested one by one; undefined where an index has them. */
export async function testedFilter(
  db: Database,
  filter: SearchFilter,
  rows: number,
): Promise<TestedFilter | undefined> {
  const { provider, type_like, text, member, verified, header } = filter
  if (type_like !== null) {
    const most = Math.floor(MAX_ENTRIES / rows)
    const counted = { limit: most + 1, most: MAX_KNOWN_TYPES }
    const { count, are_all } = await q.matchTypes(db, { provider, type_like, ...counted })
    if (!are_all || count > most) return { ...filter, type_like: null, test_type: type_like }
  }
  const isTested = text !== null || member !== null || verified !== null || header !== null
  return isTested ? { ...filter, test_type: null } : undefined
}

async function search(
  db: Database,
  clock: Clock,
  filter: TestedFilter,
  { before: first, from, limit }: Range,
  client: { gone(): AbortSignal },
): Promise<EventsPage> {
  const gone = client.gone()
  const until = clock.elapsed() + SEARCH_MS
  const found: EventSummary[] = []
  let end: Static<typeof SearchedTo> | undefined
  // Most of what people search for is among the newest events: the first steps are short.
  for (let rows = FIRST_STEP_PAGES * limit; ; rows *= STEP_GROWTH) {
    const before = end?.id ?? first
    const wanted = { before, from, limit: limit + 1 - found.length }
    const step = await inSlot(db, gone, () => searchStep(db, filter, wanted, rows))
    if (step === 'gone') {
      // Without a cursor this would look like the end of the log.
      const searchedTo = end?.received_at ?? null
      return { events: found, next_cursor: cursorAt(before), searchedTo }
    }
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
 * the row at which the next step begins. It reads `rows` events at most.
 */
export async function searchStep(
  db: Database,
  { provider, event_type, type_like, ...tests }: TestedFilter,
  { before, from, limit }: Range,
  rows = STEP.rows,
) {
  const index = { provider, event_type, type_like, before, from }
  const readsPayloads = tests.text !== null || tests.member !== null
  const most = readsPayloads ? PAYLOAD_STEP : STEP
  const step = { ...most, rows: Math.min(most.rows, rows) }
  const next = await q.searchWindowEnd(db, { ...index, ...step })
  const range = { ...index, rows: step.rows, from: next?.id ?? from, limit }
  return { next, events: await q.searchEvents(db, { ...range, ...tests }) }
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
