import type { Database } from '../../db/client.ts'
import { eventQueries as q, type EventSummary } from '../../db/hooks/events.ts'
import { createFeed, type Feed, type Page, type ReadPage } from '../../kernel/http/feed.ts'
import type { Sink } from '../../kernel/http/reply.ts'
import { encodeFrame } from '../../kernel/http/sse.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Registry } from './registry.ts'
import type { StatusMessage } from './status.ts'

/** The events as they are stored, by whichever process: of `GET /events` and of other followers. */
export interface EventStream extends Pick<Feed<EventSummary>, 'watch'> {
  /** False when as many clients as this process serves are connected. */
  readonly hasRoom: boolean
  /** Streams the events that a client wants from now on, or from above the id that it saw last. */
  connect(sink: Sink, lastEventId: number | undefined, wants?: EventTest): void
  /** The status may have changed: sent to all clients within a second. */
  statusChanged(): void
  /** Ends every stream in order, with the delay after which the client comes back. */
  close(): void
}

/** Whether a client of a filtered stream gets an event. */
export type EventTest = (event: EventSummary) => boolean

export interface StreamOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly registry: Pick<Registry, 'settings'>
  /** At most a second old; `fresh` reads it anew. Never throws: without a database it says so. */
  readonly readStatus: (fresh?: boolean) => Promise<StatusMessage>
}

/** Events replayed to a client that comes back; a `gap` message tells of older ones. */
const MAX_REPLAYED = 1_000
const MAX_CLIENTS = 4_096
const PAGE_SIZE = 500
const TICK_MS = 1_000
const KEEP_ALIVE_TICKS = 15
/** Finds the events of a notification that was lost. */
const POLL_MS = 2_000

export async function openStream(options: StreamOptions): Promise<EventStream> {
  const { db, clock, log, readStatus } = options
  let statusDue = false
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
  const stops = [clock.every(TICK_MS, tick), clock.every(POLL_MS, feed.refresh)]
  await db.listen('hooks_events', feed.refresh)

  return {
    watch: feed.watch,
    get hasRoom() {
      return feed.clients < MAX_CLIENTS
    },
    connect(sink, lastEventId, wants) {
      // The status on connect may be older than an event that came while nobody was connected.
      statusDue = true
      const resume = createResume(db, lastEventId)
      async function begin(): Promise<number> {
        const { position, notice } = await resume.begin()
        if (notice !== undefined) sink.write(notice)
        // After the position is known: the status then leaves nothing out that comes before it.
        void readStatus().then((status) => sink.write(messageFrame('status', status)))
        return position
      }
      const client = { begin, replay: resume.replay, wants }
      feed.follow(sink, client).catch(async (error: unknown) => {
        // Without the database there is nothing to resume from; the client tries again after
        // `retry`.
        log.warn('stream not resumed', { error: messageOf(error) })
        sink.end(messageFrame('status', await readStatus()))
      })
    },
    statusChanged,
    close() {
      for (const stop of stops) stop()
      feed.close()
    },
  }
}

function createEventFeed(
  { db, log, metrics, registry }: StreamOptions,
  statusChanged: () => void,
): Feed<EventSummary> {
  const cutOff = metrics.counter(
    'gatehouse_hooks_stream_cut_off',
    'Stream clients cut off for not reading.',
  )
  const feed = createFeed<EventSummary>({
    newest: async () => (await q.streamBounds(db, { replayed: 0 })).newest,
    read: async (after, limit) => ({ items: await q.listEventsAfter(db, { after, limit }) }),
    positionOf: ({ id }) => id,
    encode: (event) =>
      encodeFrame({ event: 'event-received', id: event.id, data: JSON.stringify(event) }),
    pageSize: PAGE_SIZE,
    retryMs: () => registry.settings.sse_retry_ms,
    published: statusChanged,
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

/** Where a client begins; `notice` tells it that its id is unknown here. */
interface Beginning {
  readonly position: number
  readonly notice?: Buffer
}

/** Resumes a client above the id that it saw last; a `gap` message tells what can't be replayed. */
function createResume(
  db: Database,
  requested: number | undefined,
): { begin(): Promise<Beginning>; readonly replay: ReadPage<EventSummary> } {
  /** No event up to this one is replayed. */
  let floor = 0

  async function begin(): Promise<Beginning> {
    const bounds = await q.streamBounds(db, { replayed: MAX_REPLAYED })
    const { newest, pruned_through, before_tail } = bounds
    if (requested === undefined || requested === newest) return { position: newest }
    if (requested < newest) {
      floor = Math.max(pruned_through, before_tail)
      return { position: requested }
    }
    // The id is of another database: one that was restored from a backup has lost newer events.
    return {
      position: newest,
      notice: messageFrame('gap', { requested, oldest: newest + 1, skipped: 0 }),
    }
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
