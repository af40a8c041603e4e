import { QueryError } from '../../../db/errors.ts'
import type { NewEvent } from '../../../db/hooks/deliveries.ts'
import { backoffMs, type Clock, pause } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { RandomBytes } from '../../../kernel/tokens.ts'
import { type Ingest, storedBytes } from '../ingest.ts'
import type { Rejections } from '../rejections.ts'
import { entryEvent, entrySize, type QueueEntry } from './entries.ts'

/** Reads one channel for as long as the operator wants it. */
export interface Consumer {
  /** True when the last attempt to reach the broker failed; false while the channel is disabled. */
  readonly failing: boolean
  /** Resolves once it is known whether the broker is in reach. */
  readonly known: Promise<void>
  /** Checks again whether the channel is enabled. */
  refresh(): void
  /** Stops reading; resolves when what was read is stored and acknowledged. */
  close(): Promise<void>
}

export interface ConsumerOptions {
  readonly channel: string
  readonly connect: (signal: AbortSignal) => Promise<QueueSession>
  readonly enabled: () => boolean
  readonly maxBody: () => number
  readonly ingest: Ingest
  readonly rejections: Rejections
  readonly clock: Clock
  readonly random: RandomBytes
  readonly log: Log
  /** Called when `failing` has changed. */
  readonly onChange: () => void
}

/** Bounds of one read. */
const MAX_ENTRIES = 256
const MAX_READ_BYTES = 16 * 1024 * 1024

/** SQLSTATE classes of bad data: such a row fails again however often it is tried. */
const REFUSED_DATA = /^(22|23|54)/

/**
 * Reads, stores, acknowledges; while a batch is stored the next one is read and made ready. An
 * entry is acknowledged only after its event is committed, and what is read twice is known by its
 * delivery id.
 */
export function startConsumer(options: ConsumerOptions): Consumer {
  const { channel, connect, enabled, ingest, rejections, clock, random, log } = options
  const known = Promise.withResolvers<void>()
  const stop = new AbortController()
  /** Aborted when the channel is switched, and at the stop. */
  let waiting = new AbortController()
  let wanted = enabled()
  let failing = true
  let loggedError: string | undefined
  let limit = MAX_ENTRIES

  async function run(): Promise<void> {
    let failures = 0
    while (!stop.signal.aborted) {
      waiting = new AbortController()
      if (!wanted) {
        failures = 0
        loggedError = undefined
        setFailing(false)
        await aborted(waiting.signal)
        continue
      }
      if (failures > 0) await pause(backoffMs(failures, random), waiting.signal)
      const life = new AbortController()
      /** The last read: at most two batches are on their way into the database. */
      let last = Promise.resolve()
      try {
        const session = await Promise.race([aborted(waiting.signal), connect(life.signal)])
        if (session !== undefined) reached()
        while (session !== undefined && !waiting.signal.aborted) {
          const entries = await session.receive(limit, waiting.signal)
          failures = 0
          const before = last
          last = settle(session, entries)
          // It may fail while the next read runs; the failure is handled where it is awaited.
          last.catch(() => undefined)
          await before
        }
        await last
      } catch (error) {
        failures++
        if (!waiting.signal.aborted) missed(messageOf(error))
      } finally {
        await last.catch(() => undefined)
        life.abort()
      }
    }
  }

  function reached(): void {
    if (loggedError !== undefined) log.info('queue in reach again', { channel })
    loggedError = undefined
    setFailing(false)
  }

  function missed(problem: string): void {
    if (problem !== loggedError) log.warn('queue out of reach', { channel, error: problem })
    loggedError = problem
    setFailing(true)
  }

  function setFailing(value: boolean): void {
    const changed = failing !== value
    failing = value
    known.resolve()
    if (changed) options.onChange()
  }

  /**
   * Stores and acknowledges. Retries what can't be stored now; at the stop, leaves it to other
   * consumers.
   */
  async function settle(session: QueueSession, entries: readonly QueueEntry[]): Promise<void> {
    const largest = Math.max(1, ...entries.map(entrySize))
    limit = Math.max(1, Math.min(MAX_ENTRIES, Math.floor(MAX_READ_BYTES / largest)))
    const now = clock.now()
    let left = entries.map((entry) => ({ id: entry.id, event: entryEvent(channel, entry, now) }))
    for (let failures = 1; left.length > 0; failures++) {
      const problems = await Promise.all(left.map(({ id, event }) => store(id, event)))
      const done = left.filter((_, i) => problems[i] === undefined)
      if (done.length > 0) await session.acknowledge(done.map(({ id }) => id))
      left = left.filter((_, i) => problems[i] !== undefined)
      if (left.length === 0) return
      const error = problems.find((problem) => problem !== undefined)
      log.warn('queue entries not stored yet', { channel, entries: left.length, error })
      await pause(backoffMs(failures, random), stop.signal)
      if (stop.signal.aborted) return
    }
  }

  /** Undefined when the entry is done with, else why it has to be tried again. */
  async function store(id: string, event: NewEvent): Promise<string | undefined> {
    if (storedBytes(event) > options.maxBody()) return refuse(id, event, 413, TOO_LARGE)
    try {
      return (await ingest.save(event)) === undefined ? 'the ingest queue is full' : undefined
    } catch (error) {
      if (error instanceof QueryError && REFUSED_DATA.test(error.code)) {
        return refuse(id, event, 403, `refused by the database as data (${error.code})`)
      }
      return messageOf(error)
    }
  }

  /**
   * A bad entry must not block those behind it: it stays in the stream, and its id in the
   * rejections.
   */
  async function refuse(
    id: string,
    { provider, received_at: at }: NewEvent,
    status: 403 | 413,
    why: string,
  ): Promise<undefined> {
    rejections.record({ provider, status, client: '', reason: `entry ${id}: ${why}`, at })
    await rejections.flush()
  }

  const running = run()
  return {
    get failing() {
      return failing
    },
    known: known.promise,
    refresh() {
      if (enabled() === wanted) return
      wanted = enabled()
      waiting.abort()
    },
    async close() {
      stop.abort()
      waiting.abort()
      await running
    },
  }
}

const TOO_LARGE = 'its payload and headers are over HOOKS_MAX_BODY'

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined)
    else signal.addEventListener('abort', () => resolve(undefined))
  })
}

/**
 * A connection to a message broker that reads one channel; another broker needs one more of these.
 * Both functions throw when the broker is out of reach or refuses; the session is then given up.
 */
export interface QueueSession {
  /**
   * The next entries, `limit` at most: new ones, and those that a consumer took and died with.
   * Waits a few seconds for them; empty when there are none, and at once after `signal` is aborted.
   */
  receive(limit: number, signal: AbortSignal): Promise<readonly QueueEntry[]>
  /** Tells the broker that these entries are stored: it gives them to nobody again. */
  acknowledge(ids: readonly string[]): Promise<void>
}

export interface SessionOptions {
  /** May hold a password: never logged or shown. */
  readonly url: string
  readonly channel: string
  /** Name of this process among the consumers of the channel. */
  readonly consumer: string
  readonly clock: Clock
}

/** Connects; the session and its connections end when `signal` is aborted, not before. */
export type OpenSession = (options: SessionOptions, signal: AbortSignal) => Promise<QueueSession>
