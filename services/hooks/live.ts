import type { Database } from '../../db/client.ts'
import { listEventsAfter, streamBounds } from '../../db/hooks/events.ts'
import type { EventSummary, Settings } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { Sink } from '../../kernel/http/reply.ts'
import { encodeRetry, KEEP_ALIVE } from '../../kernel/http/sse.ts'
import type { EventReader, Watching } from './event-reader.ts'
import { eventFrame, messageFrame, positionFrame } from './live-frames.ts'
import type { StatusMessage } from './status.ts'

/** The live stream of `GET /events` (hooks.md section 6). */
export interface Live {
  /** False when as many clients as this process serves are connected. */
  readonly hasRoom: boolean
  /** Streams the events that a client wants from now on, or from above the id that it saw last. */
  connect(sink: Sink, lastEventId: number | undefined, wants?: EventTest): void
  /** The status may have changed: sent to all within a second. */
  statusChanged(): void
  /** Ends every stream in order, with the delay after which the client comes back. */
  close(): void
}

/** Whether a client of a filtered stream gets an event. */
export type EventTest = (event: EventSummary) => boolean

export interface LiveOptions {
  readonly db: Database
  readonly reader: EventReader
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: () => Settings
  /** Up to a second old unless `fresh`. Never throws: without a database it says so in the message. */
  readonly readStatus: (fresh?: boolean) => Promise<StatusMessage>
}

interface Client {
  readonly sink: Sink
  /** Undefined where every event is wanted: such clients share their bytes. */
  readonly wants: EventTest | undefined
  /** Highest id sent to, or skipped for, this client. */
  position: number
}

/** Most events replayed to a client that comes back; what is older is told in a `gap` message. */
const REPLAY = 1_000
/** A client that leaves more than this unsent is cut off and resumes by id. */
const UNSENT = 1024 * 1024
const CLIENTS = 4_096
const PAGE = 500
const TICK_MS = 1_000
const KEEP_ALIVE_TICKS = 15

/**
 * A client is replayed from the database until it stands where the reader stands, and then follows
 * the reader: no hole, no repeat. A frame is encoded once, however many clients there are.
 */
export function openLive(options: LiveOptions): Live {
  const { db, reader, clock, log, metrics } = options
  const clients = new Set<Client>()
  /** Clients whose place is found: only they are sent a status. */
  const placed = new Set<Client>()
  const following = new Set<Client>()
  let watching: Watching | undefined
  let ticks = 0
  let statusDue = false
  let closing = false

  const cutOff = metrics.counter(
    'gatehouse_hooks_stream_cut_off',
    'Stream clients cut off for not reading.',
  )
  metrics.gauge('gatehouse_hooks_stream_clients', 'Connected stream clients.', () => [
    [{}, clients.size],
  ])

  function statusChanged(): void {
    statusDue = true
  }

  function publish(events: readonly EventSummary[]): void {
    const frames = events.map(eventFrame)
    const all = Buffer.concat(frames)
    const firstId = events[0]?.id ?? 0
    statusDue = true
    for (const client of following) {
      if (client.wants === undefined && client.position < firstId) write(client, all)
      else {
        for (const [i, event] of events.entries()) {
          if (event.id > client.position && isWanted(client, event)) write(client, frames[i] ?? all)
        }
      }
      client.position = Math.max(client.position, reader.position)
    }
  }

  function write(client: Client, bytes: Buffer): void {
    client.sink.write(bytes)
    if (client.sink.unsent <= UNSENT) return
    cutOff.add({})
    forget(client)
    client.sink.destroy()
  }

  function forget(client: Client): void {
    clients.delete(client)
    placed.delete(client)
    following.delete(client)
    if (clients.size > 0) return
    watching?.stop()
    watching = undefined
  }

  async function catchUp(client: Client, requested: number | undefined): Promise<void> {
    watching ??= reader.watch({ events: publish, closed: () => undefined, failed: statusChanged })
    try {
      await watching.ready
    } catch (error) {
      watching?.stop()
      watching = undefined
      throw error
    }
    const bounds = await streamBounds(db, REPLAY)
    const resumes = requested !== undefined && requested < bounds.newest
    // Such an id is of another database: one that was restored from a backup has lost newer events.
    const isAhead = requested !== undefined && requested > bounds.newest
    client.position = resumes
      ? Math.max(requested, bounds.pruned_through, bounds.before_tail)
      : bounds.newest
    if (client.sink.closed) return
    // The last id that this client knows of; what lies between it and the position is its gap.
    let seen = resumes ? requested : client.position
    // Not before the place is found: whoever has read a status misses nothing that comes after it.
    placed.add(client)
    if (isAhead) {
      const oldest = bounds.newest + 1
      write(client, messageFrame('gap', { requested, oldest, skipped: 0 }))
    }
    void options.readStatus().then((status) => write(client, messageFrame('status', status)))
    while (!client.sink.closed) {
      if (client.position === seen && client.position >= reader.position) {
        following.add(client)
        return
      }
      // The reader may go on meanwhile, past events that this query does not see yet.
      const reached = reader.position
      const events = await listEventsAfter(db, client.position, PAGE)
      const [first] = events
      if (first?.id !== client.position + 1) {
        // Retention may just have removed what this page was to begin with.
        const { pruned_through } = await streamBounds(db, 0)
        const removed =
          first === undefined ? pruned_through : Math.min(pruned_through, first.id - 1)
        client.position = Math.max(client.position, removed)
      }
      if (client.position > seen) {
        const oldest = first?.id ?? client.position + 1
        const skipped = oldest - seen - 1
        write(client, messageFrame('gap', { requested: seen, oldest, skipped }))
      }
      const wanted = events.filter((event) => isWanted(client, event))
      if (wanted.length > 0) write(client, Buffer.concat(wanted.map(eventFrame)))
      // Nothing between the two positions: retention removed it, or the ids were never used.
      client.position = events.at(-1)?.id ?? Math.max(client.position, reached)
      seen = client.position
      await client.sink.drained()
    }
  }

  async function sendStatus(): Promise<void> {
    statusDue = false
    const frame = messageFrame('status', await options.readStatus(true))
    for (const client of placed) write(client, frame)
  }

  function tick(): void {
    if (clients.size === 0) return
    ticks++
    if (ticks % KEEP_ALIVE_TICKS === 0) {
      for (const client of clients) {
        // A filtered stream may be silent for long; its client resumes from here all the same.
        const follows = client.wants !== undefined && following.has(client)
        write(client, follows ? positionFrame(client.position) : KEEP_ALIVE)
      }
      statusDue = true
    }
    if (statusDue) void sendStatus()
  }

  const stop = clock.every(TICK_MS, tick)

  return {
    get hasRoom() {
      return clients.size < CLIENTS
    },
    connect(sink, lastEventId, wants) {
      const client = { sink, wants, position: 0 }
      const retry = encodeRetry(options.settings().sse_retry_ms)
      // Not a refusal, after which a browser would never come back.
      if (closing) return sink.end(retry)
      clients.add(client)
      sink.onClose(() => forget(client))
      sink.write(retry)
      // The status on connect may be older than an event that came while nobody was connected.
      statusDue = true
      catchUp(client, lastEventId).catch(async (error: unknown) => {
        // Without the database there is nothing to resume from; the client tries again after `retry`.
        log.warn('stream not resumed', { error: messageOf(error) })
        sink.end(messageFrame('status', await options.readStatus()))
      })
    },
    statusChanged,
    close() {
      closing = true
      stop()
      for (const { sink } of clients) sink.end(encodeRetry(options.settings().sse_retry_ms))
    },
  }
}

function isWanted({ wants }: Client, event: EventSummary): boolean {
  return wants === undefined || wants(event)
}
