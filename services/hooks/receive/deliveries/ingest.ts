import { setImmediate as nextTick } from 'node:timers/promises'
import type { Executor } from '../../../../db/client.ts'
import { QueryError } from '../../../../db/errors.ts'
import {
  MAX_KNOWN_TYPES,
  saveDeliveries,
  type NewEvent,
  type SavedEvent,
} from '../../../../db/hooks/receive/deliveries.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import type { Log } from '../../../../kernel/log.ts'

/** Stores deliveries. */
export type Ingest = ReturnType<typeof createIngest>

/** Bounds of one statement. */
const MAX_BATCH_ROWS = 256
const MAX_BATCH_BYTES = 8 * 1024 * 1024
/** Bounds of all unanswered deliveries: a repeat holds its body as long as the first one. */
const MAX_WAITING = 4_096
const MAX_WAITING_BYTES = 128 * 1024 * 1024
/** A failure that took longer means a database that hangs, not one that refuses. */
const STALLED_MS = 2_000

/** One row to be inserted, for every delivery of it since the last batch. */
interface Entry {
  event: NewEvent
  bytes: number
  deliveries: number
  saved: PromiseWithResolvers<SavedEvent>
}

/** Rows on their way into the database. */
interface Writer {
  db: Executor
  log: Log
  /** In the order of their arrival, by delivery; a new one after each batch: see `takeBatch()`. */
  queue: Map<unknown, Entry>
  /** A row that the database refuses must not fail its neighbours: each of these goes alone. */
  alone: Entry[]
  /** Event types by provider that the database knows, or has no room for. */
  types: Map<string, Set<string>>
  running: Promise<void> | undefined
  commits: number
}

/**
 * Group commit: rows gather while the previous statement runs, and the next statement inserts them
 * together. An idle service answers at once; a busy one needs few commits. Repeats of a delivery
 * share a row.
 */
export function createIngest(db: Executor, log: Log) {
  const writer: Writer = {
    db,
    log,
    queue: new Map(),
    alone: [],
    types: new Map(),
    running: undefined,
    commits: 0,
  }
  let waiting = 0
  let waitingBytes = 0

  return {
    /**
     * Resolves after commit with the stored event, or with the first one when the delivery id is
     * known; undefined when too much is waiting. Throws `Unavailable` when the database is out of
     * reach.
     */
    async save(event: NewEvent) {
      if (waiting >= MAX_WAITING || waitingBytes > MAX_WAITING_BYTES) return undefined
      const bytes = storedBytes(event)
      waiting++
      waitingBytes += bytes
      try {
        return await enqueue(writer, event, bytes)
      } finally {
        waiting--
        waitingBytes -= bytes
      }
    },
    /** Resolves when nothing is waiting any more. */
    async drained() {
      while (writer.running !== undefined) await writer.running
    },
    get waiting() {
      return writer.alone.length + writer.queue.size
    },
    /** How many batches were committed; changes before their deliveries are answered. */
    get commits() {
      return writer.commits
    },
  }
}

/** Resolves when a statement with the event has ended. */
function enqueue(writer: Writer, event: NewEvent, bytes: number) {
  const { queue } = writer
  const key = deliveryKey(event)
  const entry = queue.get(key) ?? { event, bytes, deliveries: 0, saved: Promise.withResolvers() }
  entry.deliveries++
  queue.set(key, entry)
  writer.running ??= run(writer)
  return entry.saved.promise
}

/** One statement after the other. The deliveries of one are answered once the next was sent. */
async function run(writer: Writer) {
  const { alone } = writer
  // What has arrived in this tick of the event loop goes into one statement.
  await nextTick()
  let settle: () => void = () => undefined
  while (alone.length + writer.queue.size > 0) {
    const saving = saveBatch(writer, alone.length > 0 ? alone.splice(0, 1) : takeBatch(writer))
    // Not at once: the statement is sent a few microtasks later.
    setImmediate(settle)
    settle = await saving
  }
  writer.running = undefined
  settle()
}

/** Gives what answers the deliveries of the statement; never rejects. */
async function saveBatch(writer: Writer, batch: readonly Entry[]): Promise<() => void> {
  const { alone, types } = writer
  const started = performance.now()
  try {
    const typed = batch.map(({ event, deliveries }) => {
      return { event, deliveries, hasNewType: hasNewType(types, event) }
    })
    const rows = await saveDeliveries(writer.db, typed)
    for (const { event } of batch) rememberType(types, event)
    writer.commits++
    const [first] = rows
    if (first !== undefined && first.set_back_s !== null) {
      const { id: event, set_back_s } = first
      writer.log.warn('clock set back', { event, set_back_s })
    }
    return () => {
      for (const row of rows) batch[row.n]?.saved.resolve(row)
    }
  } catch (error) {
    if (error instanceof QueryError && batch.length > 1) {
      alone.push(...batch)
      return () => undefined
    }
    const stalled = error instanceof Unavailable && performance.now() - started > STALLED_MS
    // Senders give up after 10 s: a delivery can't wait for two deadlines of a stalled database.
    const failed = stalled ? [...batch, ...alone.splice(0), ...writer.queue.values()] : batch
    if (stalled) writer.queue = new Map()
    return () => {
      for (const { saved } of failed) saved.reject(error)
    }
  }
}

/**
 * Takes as many entries as one statement may have. The others go into a new map: a Map keeps
 * removed entries until V8's next full collection, because its old tables point to the new ones.
 */
function takeBatch(writer: Writer) {
  const batch: Entry[] = []
  const others: Writer['queue'] = new Map()
  let bytes = 0
  for (const [key, entry] of writer.queue) {
    bytes += entry.bytes
    const fits = batch.length < MAX_BATCH_ROWS && bytes <= MAX_BATCH_BYTES
    if (others.size === 0 && (fits || batch.length === 0)) batch.push(entry)
    else others.set(key, entry)
  }
  writer.queue = others
  return batch
}

/** The same for repeats of one delivery; an event without a delivery id is its own key. */
function deliveryKey(event: NewEvent): unknown {
  return event.external_id === null ? event : `${event.provider}\n${event.external_id}`
}

/**
 * Whether the event's type is to be stored. A provider has a maximum of known types; at the maximum
 * no further type is stored, neither here nor in the database.
 */
function hasNewType(types: Writer['types'], { provider, event_type }: NewEvent): boolean {
  const known = types.get(provider)
  if (event_type === null) return false
  return known === undefined || (known.size < MAX_KNOWN_TYPES && !known.has(event_type))
}

/** Called once the statement with the event has succeeded. */
function rememberType(types: Writer['types'], event: NewEvent): void {
  const { provider, event_type } = event
  if (event_type === null || !hasNewType(types, event)) return
  types.getOrInsertComputed(provider, () => new Set()).add(event_type)
}

const NO_HEADERS = '[]'

/** Bytes of what grows with a delivery: its body and its headers. */
export function storedBytes({ body, headers }: NewEvent) {
  return body.length + Buffer.byteLength(headers) - NO_HEADERS.length
}
