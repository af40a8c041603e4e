import { once } from 'node:events'
import { QueryError } from '../../../../db/errors.ts'
import type { NewEvent } from '../../../../db/hooks/receive/deliveries.ts'
import { backoffMs, type Clock, pause } from '../../../../kernel/time.ts'
import { messageOf } from '../../../../kernel/log.ts'
import { type Ingest, storedBytes } from '../../receive/deliveries/ingest.ts'
import type { HooksParts } from '../../registry.ts'
import type { Rejections } from '../../receive/rejections.ts'
import { entryEvent, entrySize, type QueueEntry } from './entries.ts'

/** Reads one channel for as long as the operator wants it. */
interface Consumer {
  /**
   * True when the last attempt to reach the broker failed; false while the channel is disabled.
   */
  failing: boolean
  /** Resolves after the first attempt to reach the broker. */
  known: Promise<void>
  /** Checks again whether the channel is enabled. */
  refresh(): void
  /** Stops reading; resolves when what was read is stored and acknowledged. */
  close(): Promise<void>
}

export interface ConsumerOptions extends HooksParts {
  channel: string
  connect: (signal: AbortSignal) => Promise<QueueSession>
  enabled: () => boolean
  maxBody: () => number
  ingest: Ingest
  rejections: Rejections
  /** Called when `failing` has changed. */
  onChange: () => void
}

/** Bounds of one read. */
const MAX_ENTRIES = 256
const MAX_READ_BYTES = 16 * 1024 * 1024

/** A consumer and its state. */
interface ConsumerState extends ConsumerOptions {
  /** See `Consumer`. */
  known: PromiseWithResolvers<void>
  /** Aborted at the stop. */
  stop: AbortController
  /** Aborted when the channel is switched, and at the stop. */
  waiting: AbortController
  /** Whether the channel is enabled. */
  wanted: boolean
  failing: boolean
  /** Failures since the last read. */
  failures: number
  /** What the log says of the broker; undefined while it is in reach. */
  loggedError?: string | undefined
  /** Entries that the next read may give. */
  limit: number
}

/** SQLSTATE classes of bad data: such a row fails again however often it is tried. */
const REFUSED_DATA = /^(22|23|54)/

/**
 * Reads, stores, acknowledges; while a batch is stored the next one is read and made ready. An
 * entry is acknowledged only after its event is committed, and what is read twice is known by its
 * delivery id.
 */
export function startConsumer(options: ConsumerOptions): Consumer {
  const consumer: ConsumerState = {
    ...options,
    known: Promise.withResolvers(),
    stop: new AbortController(),
    waiting: new AbortController(),
    wanted: options.enabled(),
    failing: true,
    failures: 0,
    limit: MAX_ENTRIES,
  }
  const running = run(consumer)
  return {
    get failing() {
      return consumer.failing
    },
    known: consumer.known.promise,
    refresh() {
      if (options.enabled() === consumer.wanted) return
      consumer.wanted = options.enabled()
      consumer.waiting.abort()
    },
    async close() {
      consumer.stop.abort()
      consumer.waiting.abort()
      await running
    },
  }
}

async function run(consumer: ConsumerState): Promise<void> {
  while (!consumer.stop.signal.aborted) {
    consumer.waiting = new AbortController()
    const { signal } = consumer.waiting
    if (!consumer.wanted) {
      consumer.failures = 0
      consumer.loggedError = undefined
      setFailing(consumer, false)
      await aborted(signal)
      continue
    }
    const { failures, random } = consumer
    if (failures > 0) await pause(backoffMs(failures, random), signal)
    await read(consumer, signal).catch((error: unknown) => {
      consumer.failures++
      if (!signal.aborted) missed(consumer, messageOf(error))
    })
  }
}

/** Reads until the signal; throws when the broker is out of reach or refuses. */
async function read(consumer: ConsumerState, signal: AbortSignal): Promise<void> {
  const life = new AbortController()
  /** The last read: at most two batches are on their way into the database. */
  let last = Promise.resolve()
  try {
    const session = await Promise.race([aborted(signal), consumer.connect(life.signal)])
    if (session !== undefined) reached(consumer)
    while (session !== undefined && !signal.aborted) {
      const entries = await session.receive(consumer.limit, signal)
      consumer.failures = 0
      const largest = Math.max(1, ...entries.map(entrySize))
      const fitting = Math.floor(MAX_READ_BYTES / largest)
      consumer.limit = Math.max(1, Math.min(MAX_ENTRIES, fitting))
      const before = last
      last = settle(consumer, session, entries)
      // It may fail while the next read runs; the failure is handled where it is awaited.
      last.catch(() => undefined)
      await before
    }
    await last
  } finally {
    await last.catch(() => undefined)
    life.abort()
  }
}

function reached(consumer: ConsumerState): void {
  const { channel, log, loggedError } = consumer
  if (loggedError !== undefined) log.info('queue in reach again', { channel })
  consumer.loggedError = undefined
  setFailing(consumer, false)
}

function missed(consumer: ConsumerState, error: string): void {
  const { channel, log, loggedError } = consumer
  if (error !== loggedError) log.warn('queue out of reach', { channel, error })
  consumer.loggedError = error
  setFailing(consumer, true)
}

function setFailing(consumer: ConsumerState, failing: boolean): void {
  const changed = consumer.failing !== failing
  consumer.failing = failing
  consumer.known.resolve()
  if (changed) consumer.onChange()
}

async function aborted(signal: AbortSignal): Promise<undefined> {
  if (!signal.aborted) await once(signal, 'abort')
}

/**
 * Stores and acknowledges. Retries what can't be stored now; at the stop, leaves it to other
 * consumers.
 */
async function settle(
  consumer: ConsumerState,
  session: QueueSession,
  entries: readonly QueueEntry[],
): Promise<void> {
  const { channel, random, log } = consumer
  const stop = consumer.stop.signal
  let left = entries.map((entry) => ({ id: entry.id, event: entryEvent(channel, entry) }))
  for (let failures = 1; left.length > 0; failures++) {
    const problems = await Promise.all(left.map(({ id, event }) => store(consumer, id, event)))
    const done = left.filter((_, i) => problems[i] === undefined)
    if (done.length > 0) await session.acknowledge(done.map(({ id }) => id))
    left = left.filter((_, i) => problems[i] !== undefined)
    const error = problems.find((problem) => problem !== undefined)
    if (error === undefined) return
    log.warn('queue entries not stored yet', { channel, entries: left.length, error })
    await pause(backoffMs(failures, random), stop)
    if (stop.aborted) return
  }
}

const TOO_LARGE = 'its payload and headers are over HOOKS_MAX_BODY'

/** Undefined when the entry is done with, else why it has to be tried again. */
async function store(
  options: ConsumerOptions,
  id: string,
  event: NewEvent,
): Promise<string | undefined> {
  if (storedBytes(event) > options.maxBody()) return refuse(options, id, event, 413, TOO_LARGE)
  try {
    const saved = await options.ingest.save(event)
    return saved === undefined ? 'the ingest queue is full' : undefined
  } catch (error) {
    if (error instanceof QueryError && REFUSED_DATA.test(error.code)) {
      const why = `refused by the database as data (${error.code})`
      return refuse(options, id, event, 403, why)
    }
    return messageOf(error)
  }
}

/**
 * A bad entry must not block those behind it: it stays in the stream, and its id in the
 * rejections.
 */
async function refuse(
  { rejections, clock }: ConsumerOptions,
  id: string,
  { provider }: NewEvent,
  status: 403 | 413,
  why: string,
): Promise<undefined> {
  const at = clock.now()
  rejections.record({ provider, status, client: '', reason: `entry ${id}: ${why}`, at })
  await rejections.flush()
}

/**
 * A connection to a message broker that reads one channel; another broker needs one more of these.
 * Both functions throw when the broker is out of reach or refuses; the session is then given up.
 */
interface QueueSession {
  /**
   * The next entries, `limit` at most: new ones, and those that a consumer took before it died.
   * Waits a few seconds for them. Empty if none came, or once `signal` is aborted.
   */
  receive(limit: number, signal: AbortSignal): Promise<readonly QueueEntry[]>
  /** Tells the broker that these entries are stored: it gives them to nobody again. */
  acknowledge(ids: readonly string[]): Promise<void>
}

export interface SessionOptions {
  /** May hold a password: never logged or shown. */
  url: string
  channel: string
  /** Name of this process among the consumers of the channel. */
  consumer: string
  clock: Clock
}

/** Connects; the session and its connections end when `signal` is aborted, not before. */
export type OpenSession = (options: SessionOptions, signal: AbortSignal) => Promise<QueueSession>
