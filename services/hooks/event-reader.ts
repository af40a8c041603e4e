import type { Database } from '../../db/client.ts'
import { listEventsAfter, streamBounds } from '../../db/hooks/events.ts'
import type { EventSummary } from '../../db/hooks/rows.ts'
import type { Clock } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'

/** Follows the table of events for everybody in this process who wants to know of new ones. */
export interface EventReader {
  /** Highest id that the watchers were told of. */
  readonly position: number
  /** Tells a watcher of every event that is stored once `ready` has resolved, until it is stopped. */
  watch(watcher: Watcher): Watching
  close(): void
}

export interface Watching {
  readonly ready: Promise<void>
  readonly stop: () => void
}

/** Somebody who follows the events, in order; `closed` means that no more will come. */
export interface Watcher {
  readonly events: (events: readonly EventSummary[]) => void
  readonly closed: () => void
  /** The table could not be read; it is tried again. */
  readonly failed?: () => void
}

const PAGE = 500
const POLL_MS = 2_000

/**
 * One reader for all: woken by NOTIFY, healed by a slow poll, it reads what is above its position.
 * Because ids become visible in order, it never skips an event, whichever process stored it. Without
 * watchers nothing is read.
 */
export async function openEventReader(db: Database, clock: Clock, log: Log): Promise<EventReader> {
  const watchers = new Set<Watcher>()
  let position = 0
  let starting: Promise<void> | undefined
  let reading = false
  let wakeAgain = false
  let closed = false

  /** The first watcher starts the reader at the newest event. */
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
    if (reading || watchers.size === 0) return
    reading = true
    try {
      await start()
      while (wakeAgain) {
        wakeAgain = false
        let events: readonly EventSummary[]
        do {
          events = await listEventsAfter(db, position, PAGE)
          tell(events)
        } while (events.length === PAGE)
      }
    } catch (error) {
      // The poll tries again; nobody's position has moved.
      log.warn('events not read', { error: messageOf(error) })
      for (const watcher of watchers) watcher.failed?.()
    } finally {
      reading = false
    }
  }

  function tell(events: readonly EventSummary[]): void {
    const last = events.at(-1)
    if (last === undefined) return
    position = last.id
    for (const watcher of watchers) watcher.events(events)
  }

  await db.listen('hooks_events', () => void read())
  const stopPoll = clock.every(POLL_MS, () => void read())

  return {
    get position() {
      return position
    },
    watch(watcher) {
      watchers.add(watcher)
      if (closed) watcher.closed()
      return {
        ready: start(),
        stop: () => {
          watchers.delete(watcher)
          if (watchers.size === 0) starting = undefined
        },
      }
    },
    close() {
      closed = true
      stopPoll()
      for (const watcher of watchers) watcher.closed()
    },
  }
}
