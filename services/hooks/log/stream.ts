import type { Database } from '../../../db/client.ts'
import { eventQueries as q, type EventSummary } from '../../../db/hooks/log/events.ts'
import { createFeed, type Feed, type Page } from '../../../kernel/http/feed.ts'
import type { Sink } from '../../../kernel/http/reply.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { encodeFrame } from '../../../kernel/http/sse.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import { pause, type Clock } from '../../../kernel/time.ts'
import type { Registry } from '../registry.ts'
import type { StatusMessage } from './status.ts'

/** The events as they are stored, by whichever process: for clients and for other followers. */
export type EventStream = Awaited<ReturnType<typeof openStream>>

/** Whether a client of a filtered stream gets an event. */
type EventTest = (event: EventSummary) => boolean

interface StreamOptions {
  db: Database
  clock: Clock
  log: Log
  metrics: Metrics
  registry: Pick<Registry, 'settings'>
  /**
   * At most a second old; `fresh` reads it now. Never throws: without a database the status says
   * so.
   */
  readStatus: (fresh?: boolean) => Promise<StatusMessage>
}

/** Events replayed to a client that comes back; a `gap` message tells of older ones. */
const MAX_REPLAYED = 1_000
const MAX_CLIENTS = 4_096
const PAGE_SIZE = 500
const TICK_MS = 1_000
const KEEP_ALIVE_TICKS = 15
/** Finds the events of a notification that was lost. */
const POLL_MS = 2_000

export async function openStream(options: StreamOptions) {
  const { db, clock, log, readStatus } = options
  let statusDue = false
  /** The status may have changed: sent to all clients within a second. */
  const statusChanged = (): void => {
    statusDue = true
  }
  const feed = createEventFeed(options, statusChanged)

  let ticks = 0
  function tick(): void {
    if (feed.clients === 0) return
    ticks++
    if (ticks % KEEP_ALIVE_TICKS === 0) {
      feed.keepAlive()
      statusDue = true
    }
    if (!statusDue) return
    statusDue = false
    void readStatus(true).then((status) => feed.send(messageFrame('status', status)))
  }
  const closed = new AbortController()
  const stops = [clock.every(TICK_MS, tick), clock.every(POLL_MS, feed.refresh)]
  await db.listen('hooks_events', feed.refresh)

  return {
    watch: feed.watch,
    /** The position of a page that follows from now on: the id of the newest event, or 0. */
    newest: () => readNewest(db),
    /** The pages above a position, until the abort; after an outage they begin there again. */
    pages: (after: number, gone: AbortSignal) =>
      pages(feed, log, after, AbortSignal.any([gone, closed.signal])),
    /** False when as many clients as this process serves are connected. */
    get hasRoom() {
      return feed.clients < MAX_CLIENTS
    },
    /** Streams the events that a client wants from now on, or from above the id it saw last. */
    connect(sink: Sink, lastEventId: number | undefined, wants?: EventTest): void {
      // The status on connect may be older than an event that came while nobody was connected.
      statusDue = true
      const resume = createResume(db, lastEventId)
      const begin = () => greet(sink, resume, readStatus)
      const client = { begin, replay: resume.replay, wants }
      feed.follow(sink, client).catch(async (error: unknown) => {
        // Without the database there is nothing to resume from; the client tries again after
        // `retry`.
        log.warn('stream not resumed', { error: messageOf(error) })
        sink.end(messageFrame('status', await readStatus()))
      })
    },
    statusChanged,
    /** Ends every stream in order, with the delay after which the client comes back. */
    close(): void {
      for (const stop of stops) stop()
      closed.abort()
      feed.close()
    },
  }
}

async function* pages(feed: Feed<EventSummary>, log: Log, after: number, over: AbortSignal) {
  while (!over.aborted) {
    try {
      return yield* feed.pages(after, over)
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error
      log.warn('events not read', { error: messageOf(error) })
      await pause(POLL_MS, over)
    }
  }
}

/** Finds where a client begins, and writes what comes before its events. */
async function greet(sink: Sink, resume: Resume, readStatus: StreamOptions['readStatus']) {
  const { position, notice } = await resume.begin()
  if (notice !== undefined) sink.write(notice)
  // After the position is known: the status then leaves nothing out that comes before it.
  void readStatus().then((status) => sink.write(messageFrame('status', status)))
  return position
}

function createEventFeed(
  { db, clock, log, metrics, registry }: StreamOptions,
  statusChanged: () => void,
): Feed<EventSummary> {
  const cutOff = metrics.counter(
    'gatehouse_hooks_stream_cut_off',
    'Stream clients cut off for not reading.',
  )
  const seconds = metrics.histogram(
    'gatehouse_hooks_stream_seconds',
    'Time from receiving an event to sending it to stream clients.',
  )
  const observe = seconds.series({})
  const feed = createFeed<EventSummary>({
    newest: () => readNewest(db),
    read: async (after, limit) => ({ items: await q.listEventsAfter(db, { after, limit }) }),
    positionOf: ({ id }) => id,
    encode: (event) =>
      encodeFrame({ event: 'event-received', id: event.id, data: JSON.stringify(event) }),
    pageSize: PAGE_SIZE,
    retryMs: () => registry.settings.sse_retry_ms,
    published(events) {
      if (feed.clients > 0) {
        const now = clock.now().getTime()
        // Received by the clock of the database, which may be ahead of ours.
        for (const { received_at } of events) {
          observe(Math.max(0, now - received_at.getTime()) / 1_000)
        }
      }
      statusChanged()
    },
    cutOff: () => cutOff.add({}),
    failed(error) {
      log.warn('events not read', { error: messageOf(error) })
      statusChanged()
    },
  })
  metrics.gauge('gatehouse_hooks_stream_clients', 'Connected stream clients.', () => [
    [{}, feed.clients],
  ])
  return feed
}

async function readNewest(db: Database): Promise<number> {
  return (await q.streamBounds(db, { replayed: 0 })).newest
}

type Resume = ReturnType<typeof createResume>

/**
 * Resumes a client above the id that it saw last; a `gap` message tells what can't be replayed.
 */
function createResume(db: Database, requested: number | undefined) {
  /** No event up to this one is replayed. */
  let floor = 0

  /** Where the client begins; `notice` tells it that its id is unknown here. */
  async function begin() {
    const bounds = await q.streamBounds(db, { replayed: MAX_REPLAYED })
    const { newest, pruned_through, before_tail } = bounds
    if (requested === undefined || requested === newest) return { position: newest }
    if (requested < newest) {
      floor = Math.max(pruned_through, before_tail)
      return { position: requested }
    }
    // The id is of another database: one that was restored from a backup has lost newer events.
    const gap = { requested, oldest: newest + 1, skipped: 0 }
    return { position: newest, notice: messageFrame('gap', gap) }
  }

  async function replay(after: number, limit: number): Promise<Page<EventSummary>> {
    const from = Math.max(after, floor)
    const items = await q.listEventsAfter(db, { after: from, limit })
    const [first] = items
    if (first?.id !== from + 1) {
      // Retention may just have removed the events with which this page would begin.
      const { pruned_through } = await q.streamBounds(db, { replayed: 0 })
      const removed = Math.min(pruned_through, (first?.id ?? Infinity) - 1)
      floor = Math.max(from, removed)
    }
    if (floor <= after) return { items }
    const oldest = first?.id ?? floor + 1
    const gap = { requested: after, oldest, skipped: oldest - after - 1 }
    return { items, notice: messageFrame('gap', gap) }
  }

  return { begin, replay }
}

/** A message without id: the client keeps its position. */
function messageFrame(event: 'status' | 'gap', value: unknown): Buffer {
  return encodeFrame({ event, data: JSON.stringify(value) })
}
