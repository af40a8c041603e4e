import type { Database } from '../../db/client.ts'
import { listEventsAfter, streamBounds } from '../../db/hooks/events.ts'
import type { EventSummary, Settings } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/clock.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import type { Sink } from '../../kernel/reply.ts'
import { encodeRetry, KEEP_ALIVE } from '../../kernel/sse.ts'
import { eventFrame, messageFrame } from './live-frames.ts'
import type { StatusMessage } from './status.ts'

/** The live stream of `GET /events` (hooks.md section 6). */
export interface Live {
  /** False when as many clients as this process serves are connected. */
  readonly hasRoom: boolean
  /** Streams to a client from now on, or from above the id that it saw last. */
  connect(sink: Sink, lastEventId: number | undefined): void
  /** Tells a watcher of every event that is stored once `ready` has resolved, until it is stopped. */
  watch(watcher: Watcher): { readonly ready: Promise<void>; readonly stop: () => void }
  /** The status may have changed: sent to all within a second. */
  statusChanged(): void
  /** Ends every stream in order, with the delay after which the client comes back. */
  close(): void
}

/** Somebody inside the program who follows the events; `closed` means that no more will come. */
export interface Watcher {
  readonly events: (events: readonly EventSummary[]) => void
  readonly closed: () => void
}

export interface LiveOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: () => Settings
  /** Up to a second old unless `fresh`. Never throws: without a database it says so in the message. */
  readonly readStatus: (fresh?: boolean) => Promise<StatusMessage>
}

interface Client {
  readonly sink: Sink
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
const POLL_TICKS = 2
const KEEP_ALIVE_TICKS = 15

/**
 * One reader follows the table for all clients: woken by NOTIFY, healed by a slow poll, it reads
 * what is above its position. Because ids become visible in order, it never skips an event, whichever
 * process stored it. A frame is encoded once, however many clients there are.
 */
export async function openLive(options: LiveOptions): Promise<Live> {
  const { db, clock, log, metrics } = options
  const clients = new Set<Client>()
  const following = new Set<Client>()
  const watchers = new Set<Watcher>()
  let position = 0
  let starting: Promise<void> | undefined
  let reading = false
  let wakeAgain = false
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

  /** The first reader starts at the newest event; when nobody is there nothing is read. */
  function start(): Promise<void> {
    starting ??= streamBounds(db, 0).then(
      (bounds) => {
        position = bounds.newest
      },
      (error: unknown) => {
        starting = undefined
        throw error
      },
    )
    return starting
  }

  async function read(): Promise<void> {
    wakeAgain = true
    if (reading || isIdle()) return
    reading = true
    try {
      await start()
      while (wakeAgain) {
        wakeAgain = false
        let events: readonly EventSummary[]
        do {
          events = await listEventsAfter(db, position, PAGE)
          publish(events)
        } while (events.length === PAGE)
      }
    } catch (error) {
      // The poll tries again; clients keep their position meanwhile.
      statusDue = true
      log.warn('stream not read', { error: messageOf(error) })
    } finally {
      reading = false
    }
  }

  function isIdle(): boolean {
    return clients.size === 0 && watchers.size === 0
  }

  function publish(events: readonly EventSummary[]): void {
    const last = events.at(-1)
    if (last === undefined) return
    for (const watcher of watchers) watcher.events(events)
    const frames = events.map(eventFrame)
    const all = Buffer.concat(frames)
    const firstId = events[0]?.id ?? 0
    position = last.id
    statusDue = true
    for (const client of following) {
      if (client.position < firstId) write(client, all)
      else
        for (const [i, event] of events.entries())
          if (event.id > client.position) write(client, frames[i] ?? all)
      client.position = Math.max(client.position, last.id)
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
    following.delete(client)
    if (isIdle()) starting = undefined
  }

  /** Replays from the database until the client stands where the reader stands, then lets it follow. */
  async function catchUp(client: Client, requested: number | undefined): Promise<void> {
    await start()
    const bounds = await streamBounds(db, REPLAY)
    const resumes = requested !== undefined && requested < bounds.newest
    client.position = resumes
      ? Math.max(requested, bounds.pruned_through, bounds.before_tail)
      : bounds.newest
    let gap = resumes && client.position > requested
    // Not before the place is found: whoever has read a status misses nothing that comes after it.
    void options.readStatus().then((status) => write(client, messageFrame('status', status)))
    while (!client.sink.closed) {
      if (!gap && client.position >= position) {
        following.add(client)
        return
      }
      // The reader may go on meanwhile, past events that this query does not see yet.
      const reached = position
      const events = await listEventsAfter(db, client.position, PAGE)
      if (gap) {
        const oldest = events[0]?.id ?? client.position + 1
        write(
          client,
          messageFrame('gap', { requested, oldest, skipped: oldest - (requested ?? 0) - 1 }),
        )
        gap = false
      }
      if (events.length > 0) write(client, Buffer.concat(events.map(eventFrame)))
      // Nothing between the two positions: retention removed it, or the ids were never used.
      client.position = events.at(-1)?.id ?? Math.max(client.position, reached)
      await client.sink.drained()
    }
  }

  async function sendStatus(): Promise<void> {
    statusDue = false
    const frame = messageFrame('status', await options.readStatus(true))
    for (const client of clients) write(client, frame)
  }

  function tick(): void {
    if (isIdle()) return
    ticks++
    if (ticks % POLL_TICKS === 0) void read()
    if (ticks % KEEP_ALIVE_TICKS === 0) {
      for (const client of clients) write(client, KEEP_ALIVE)
      statusDue = true
    }
    if (statusDue) void sendStatus()
  }

  await db.listen('hooks_events', () => void read())
  const stop = clock.every(TICK_MS, tick)

  return {
    get hasRoom() {
      return !closing && clients.size < CLIENTS
    },
    connect(sink, lastEventId) {
      const client = { sink, position: 0 }
      clients.add(client)
      sink.onClose(() => forget(client))
      sink.write(encodeRetry(options.settings().sse_retry_ms))
      // The status on connect may be older than an event that came while nobody was connected.
      statusDue = true
      catchUp(client, lastEventId).catch(async (error: unknown) => {
        // Without the database there is nothing to resume from; the client tries again after `retry`.
        log.warn('stream not resumed', { error: messageOf(error) })
        sink.end(messageFrame('status', await options.readStatus()))
      })
    },
    watch(watcher) {
      watchers.add(watcher)
      if (closing) watcher.closed()
      const stop = (): void => {
        watchers.delete(watcher)
        if (isIdle()) starting = undefined
      }
      return { ready: start(), stop }
    },
    statusChanged() {
      statusDue = true
    },
    close() {
      closing = true
      stop()
      for (const watcher of watchers) watcher.closed()
      for (const { sink } of clients) sink.end(encodeRetry(options.settings().sse_retry_ms))
    },
  }
}
