import { setImmediate as nextTick } from 'node:timers/promises'
import type { Executor } from '../../db/client.ts'
import { QueryError } from '../../db/errors.ts'
import { saveDeliveries, type NewEvent, type SavedEvent } from '../../db/hooks/deliveries.ts'
import { Unavailable } from '../../kernel/fault.ts'

/** Stores deliveries. */
export interface Ingest {
  /**
   * Resolves after commit with the stored event, or with the first one when the delivery id is
   * known; undefined when too much is waiting. Throws `Unavailable` when the database is out of
   * reach.
   */
  save(event: NewEvent): Promise<SavedEvent | undefined>
  /** Resolves when nothing is waiting any more. */
  drained(): Promise<void>
  readonly waiting: number
  /**
   * How often something was committed; it has changed before any of those deliveries is answered.
   */
  readonly commits: number
}

/** Bounds of one statement. */
const MAX_BATCH_ROWS = 256
const MAX_BATCH_BYTES = 8 * 1024 * 1024
/** Bounds of all unanswered deliveries: a repeat holds its body as long as the first one. */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 128 * 1024 * 1024
/** A failure that took longer means a database that hangs, not one that refuses. */
const STALLED_MS = 2_000

interface Waiter {
  readonly resolve: (saved: SavedEvent) => void
  readonly reject: (error: unknown) => void
}

/** Answers the deliveries of a statement that has ended. */
type Settle = () => void

/** One row to be inserted, and every delivery of it since the last batch. */
interface Entry {
  readonly event: NewEvent
  readonly bytes: number
  /** Provider and delivery id; undefined without a delivery id. */
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

  /** One statement after the other. The deliveries of one are answered once the next was sent. */
  async function run(): Promise<void> {
    // What has arrived in this tick of the event loop goes into one statement.
    await nextTick()
    let settle: Settle = () => undefined
    while (queue.length > 0) {
      const saving = saveBatch(takeBatch())
      // Not at once: the statement is sent a few microtasks later.
      setImmediate(settle)
      settle = await saving
    }
    running = undefined
    settle()
  }

  function takeBatch(): Entry[] {
    let bytes = 0
    let count = 0
    for (const entry of queue) {
      bytes += entry.bytes
      if (count > 0 && (count === MAX_BATCH_ROWS || bytes > MAX_BATCH_BYTES)) break
      count++
    }
    const batch = queue.splice(0, count)
    for (const { key } of batch) if (key !== undefined) byDelivery.delete(key)
    return batch
  }

  /** Never rejects. */
  async function saveBatch(batch: readonly Entry[]): Promise<Settle> {
    const started = performance.now()
    try {
      return await commit(batch)
    } catch (error) {
      if (error instanceof QueryError && batch.length > 1) return saveEach(batch)
      return failure(batch, error, started)
    }
  }

  /**
   * A row that the database refuses must not fail its neighbours: each row gets a statement of its
   * own.
   */
  async function saveEach(batch: readonly Entry[]): Promise<Settle> {
    for (const [n, entry] of batch.entries()) {
      const started = performance.now()
      try {
        ;(await commit([entry]))()
      } catch (error) {
        // Those behind it have waited as long, and would find the database out of reach, too.
        if (error instanceof Unavailable) return failure(batch.slice(n), error, started)
        failure([entry], error, started)()
      }
    }
    return () => undefined
  }

  async function commit(batch: readonly Entry[]): Promise<Settle> {
    const rows = batch.map(({ event, waiters }) => ({ event, deliveries: waiters.length }))
    const saved = await saveDeliveries(db, rows)
    commits++
    const answered = batch.map(({ waiters }, n) => {
      const row = saved[n]
      if (row?.n !== n) throw new Error(`saveDeliveries: no row ${n}`)
      return { waiters, row }
    })
    return () => {
      for (const { waiters, row } of answered) for (const { resolve } of waiters) resolve(row)
    }
  }

  /**
   * Fails the batch of a statement that began at a time, and all who wait when the database hangs.
   */
  function failure(batch: readonly Entry[], error: unknown, started: number): Settle {
    const stalled = error instanceof Unavailable && performance.now() - started > STALLED_MS
    const failed = stalled ? [...batch, ...takeAll()] : batch
    return () => {
      for (const { waiters } of failed) for (const { reject } of waiters) reject(error)
    }
  }

  /** Senders give up after 10 s: a delivery can't wait for two deadlines of a stalled database. */
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

/** Bytes of what grows with a delivery: its body and its headers. */
export function storedBytes({ body, headers }: NewEvent): number {
  let bytes = body.length
  for (const name in headers) bytes += name.length + Buffer.byteLength(headers[name] ?? '')
  return bytes
}
