import { setImmediate as endOfTurn } from 'node:timers/promises'
import type { Executor } from '../../db/client.ts'
import { QueryError } from '../../db/errors.ts'
import { saveEvents } from '../../db/hooks/events.ts'
import type { NewEvent, SavedEvent } from '../../db/hooks/rows.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { storedBytes } from './stored-bytes.ts'

/** Stores deliveries; an answer means that the event is committed. */
export interface Ingest {
  /**
   * Resolves after commit with the stored event, or with the first one when the delivery id is
   * known; undefined when too much is waiting. Throws `Unavailable` when the database is out of reach.
   */
  save(event: NewEvent): Promise<SavedEvent | undefined>
  /** Resolves when nothing is waiting any more. */
  drained(): Promise<void>
  readonly waiting: number
  /** How often something was committed; it has changed before any of those deliveries is answered. */
  readonly commits: number
}

/** Bounds of one statement. */
const BATCH_ROWS = 256
const BATCH_BYTES = 8 * 1024 * 1024
/** Bounds of all deliveries without an answer: a repeat holds its body as long as the first one. */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 128 * 1024 * 1024
/** A failure that took longer is a database that hangs, not one that refuses. */
const STALLED_MS = 2_000

interface Waiter {
  readonly resolve: (saved: SavedEvent) => void
  readonly reject: (error: unknown) => void
}

/** Settles those who wait for a statement. */
type Tell = () => void

/** One row to be inserted, and everybody who delivered it since the last batch. */
interface Entry {
  readonly event: NewEvent
  readonly bytes: number
  /** The delivery, as far as the sender names it. */
  readonly key: string | undefined
  readonly waiters: Waiter[]
}

/**
 * Group commit: rows gather while the previous statement runs and go in together, so that an idle
 * service answers at once and a busy one needs few commits. Repeats of one delivery share a row.
 */
export function createIngest(db: Executor): Ingest {
  const queue: Entry[] = []
  let waiting = 0
  let waitingBytes = 0
  const byDelivery = new Map<string, Entry>()
  let running: Promise<void> | undefined
  let commits = 0

  /** One statement after the other. Who waited for one is told when the next is on its way. */
  async function run(): Promise<void> {
    // What has arrived in this turn of the event loop goes into one statement.
    await endOfTurn()
    let tell: Tell = () => undefined
    while (queue.length > 0) {
      const saving = saveBatch(takeBatch())
      // Not at once: the statement is sent a few steps later.
      setImmediate(tell)
      tell = await saving
    }
    running = undefined
    tell()
  }

  function takeBatch(): Entry[] {
    let bytes = 0
    let count = 0
    for (const entry of queue) {
      bytes += entry.bytes
      if (count > 0 && (count === BATCH_ROWS || bytes > BATCH_BYTES)) break
      count++
    }
    const batch = queue.splice(0, count)
    for (const { key } of batch) if (key !== undefined) byDelivery.delete(key)
    return batch
  }

  /** Never rejects; gives what tells those who wait how it ended. */
  async function saveBatch(batch: readonly Entry[]): Promise<Tell> {
    const started = performance.now()
    try {
      return await commit(batch)
    } catch (error) {
      if (error instanceof QueryError && batch.length > 1) return saveEach(batch)
      return refusal(batch, error, started)
    }
  }

  /** A row that the database refuses must not fail its neighbours: each gets a statement of its own. */
  async function saveEach(batch: readonly Entry[]): Promise<Tell> {
    for (const [n, entry] of batch.entries()) {
      const started = performance.now()
      try {
        ;(await commit([entry]))()
      } catch (error) {
        // Out of reach for one is out of reach for those behind it, which have waited as long.
        if (error instanceof Unavailable) return refusal(batch.slice(n), error, started)
        refusal([entry], error, started)()
      }
    }
    return () => undefined
  }

  async function commit(batch: readonly Entry[]): Promise<Tell> {
    const rows = batch.map(({ event, waiters }) => ({ event, attempts: waiters.length }))
    const saved = await saveEvents(db, rows)
    commits++
    const answered = batch.map(({ waiters }, n) => {
      const row = saved[n]
      if (row?.n !== n) throw new Error(`saveEvents: no answer for row ${n}`)
      return { waiters, row }
    })
    return () => {
      for (const { waiters, row } of answered) for (const { resolve } of waiters) resolve(row)
    }
  }

  /** Tells the batch of the error of a statement begun at a time, and all who wait when the database hangs. */
  function refusal(batch: readonly Entry[], error: unknown, started: number): Tell {
    const stalled = error instanceof Unavailable && performance.now() - started > STALLED_MS
    const failed = stalled ? [...batch, ...takeAll()] : batch
    return () => {
      for (const { waiters } of failed) for (const { reject } of waiters) reject(error)
    }
  }

  /** A sender gives up after 10 s: what waited for one deadline of a stalled database can't wait for another. */
  function takeAll(): Entry[] {
    byDelivery.clear()
    return queue.splice(0)
  }

  /** Resolves when a statement with the event has ended. */
  function enqueue(event: NewEvent, bytes: number): Promise<SavedEvent> {
    const key = deliveryKey(event)
    const same = key === undefined ? undefined : byDelivery.get(key)
    return new Promise((resolve, reject) => {
      if (same !== undefined) {
        same.waiters.push({ resolve, reject })
        return
      }
      const entry = { event, bytes, key, waiters: [{ resolve, reject }] }
      queue.push(entry)
      if (key !== undefined) byDelivery.set(key, entry)
      running ??= run()
    })
  }

  return {
    async save(event) {
      if (waiting >= MAX_WAITING || waitingBytes > MAX_WAITING_BYTES) return undefined
      const bytes = storedBytes(event)
      waiting++
      waitingBytes += bytes
      try {
        return await enqueue(event, bytes)
      } finally {
        waiting--
        waitingBytes -= bytes
      }
    },
    drained: async () => {
      while (running !== undefined) await running
    },
    get waiting() {
      return queue.length
    },
    get commits() {
      return commits
    },
  }
}

function deliveryKey({ provider, external_id }: NewEvent): string | undefined {
  return external_id === null ? undefined : `${provider}\n${external_id}`
}
