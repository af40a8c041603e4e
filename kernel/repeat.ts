import { Unavailable } from './fault.ts'
import { messageOf, type Log } from './log.ts'
import type { Clock } from './time.ts'
import type { RandomBytes } from './tokens.ts'

/** Work that is done again and again, never twice at a time. */
export interface Repeat {
  /** Does it now, or once more after the run that is under way; resolves when that is over. */
  now(): Promise<void>
  /** Does it no more; resolves when nothing of it runs. */
  stop(): Promise<void>
}

/** What people are told of it, once for each time that it begins to fail and to work. */
export interface Reports {
  readonly fails: (error: unknown) => void
  readonly works: () => void
}

/** Does some work each `ms`, the first time after that, and leaves out what would overlap. */
export function repeat(
  clock: Clock,
  ms: number,
  work: () => Promise<void>,
  { fails, works }: Reports,
): Repeat {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  let failing = false
  let stopped = false

  async function run(): Promise<void> {
    try {
      await work()
      if (failing) works()
      failing = false
    } catch (error) {
      if (!failing) fails(error)
      failing = true
    }
  }

  function begin(): Promise<void> {
    running ??= run().finally(() => (running = undefined))
    return running
  }

  async function beginNext(): Promise<void> {
    // It may have looked already at what has changed since.
    await running
    next = undefined
    if (!stopped) await begin()
  }

  const stopTimer = clock.every(ms, () => void begin())
  return {
    async now() {
      if (stopped) return
      if (running === undefined) return begin()
      next ??= beginNext()
      return next
    },
    async stop() {
      stopped = true
      stopTimer()
      await (next ?? running)
    },
  }
}

interface RetryOptions {
  readonly clock: Clock
  /** Attempts in all, over every call. */
  readonly tries: number
  readonly pauseMs: number
  /** Once aborted, the next failure is final. */
  readonly signal: AbortSignal
  /** An attempt has failed, and another one follows. */
  readonly onRetry?: (error: unknown) => void
}

/** Does a piece of work, again and again while it fails for want of the database. */
export type Retry = <T>(work: () => Promise<T>) => Promise<T>

/** Short outages of the database must not lose what is written last. Any other error is final. */
export function retryWhileUnavailable(options: RetryOptions): Retry {
  const { clock, tries, pauseMs, signal, onRetry } = options
  let triesLeft = tries
  return async (work) => {
    for (;;) {
      try {
        return await work()
      } catch (error) {
        triesLeft--
        const final = triesLeft <= 0 || signal.aborted || !(error instanceof Unavailable)
        if (final) throw error
        onRetry?.(error)
      }
      await pauseOf(clock, pauseMs, signal)
    }
  }
}

async function pauseOf(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const end = (): void => resolve()
  const stop = clock.every(ms, end)
  signal.addEventListener('abort', end, { once: true })
  await promise
  stop()
  signal.removeEventListener('abort', end)
}

/**
 * Removes what is no longer kept: hourly, and when asked, as at the start and after a change of
 * settings.
 */
export interface Pruning {
  /** Starts a run, or another one after the present run. */
  prune(): void
  /** Resolves when the present run is over. */
  close(): Promise<void>
}

/**
 * Repeats a statement that removes a little until it removes nothing; gives how much it removed.
 */
export type InBatches = (batch: () => Promise<number>) => Promise<number>

const HOUR_MS = 3_600_000

/** Small batches, each a statement of its own: nobody waits long for one. */
export const PRUNE_BATCH = 500

/** Prunes by `run`, which leaves off after the present batch when the program stops. */
export function startPruning(
  clock: Clock,
  log: Log,
  run: (inBatches: InBatches) => Promise<void>,
): Pruning {
  let closed = false

  async function inBatches(batch: () => Promise<number>): Promise<number> {
    let total = 0
    for (;;) {
      const removed = closed ? 0 : await batch()
      if (removed === 0) return total
      total += removed
    }
  }

  const runs = repeat(clock, HOUR_MS, () => run(inBatches), {
    fails: (error) => log.warn('prune failed', { error: messageOf(error) }),
    works: () => log.info('prune works again'),
  })
  return {
    prune: () => void runs.now(),
    close() {
      closed = true
      return runs.stop()
    },
  }
}

/** Tells the database which batches it has applied already. */
interface BatchNumber {
  /** One process. */
  readonly writer: string
  /** Rises with every batch of the writer. */
  readonly batch: number
}

interface NumberedBatchesOptions<Content> {
  readonly clock: Clock
  readonly random: RandomBytes
  /** Takes what has gathered since the last call; undefined when there is nothing. */
  readonly take: () => Content | undefined
  /** Applies a batch, unless one with its number or a higher one of the same writer was applied. */
  readonly save: (content: Content, number: BatchNumber) => Promise<void>
  readonly reports: Reports
}

interface NumberedBatches<Content> {
  /** The batch without an acknowledgement: in flight, or kept because the database failed. */
  readonly unacknowledged: Content | undefined
  /** Writes now what has gathered; resolves when that has succeeded or failed. */
  flush(): Promise<void>
  /** Writes the rest, and no more afterwards. */
  close(): Promise<void>
}

const FLUSH_MS = 1_000

/**
 * Writes what gathers in memory once every second. If an acknowledgement is lost, the same batch is
 * resent with its number and applied at most once.
 */
export function startNumberedBatches<Content>({
  clock,
  random,
  take,
  save,
  reports,
}: NumberedBatchesOptions<Content>): NumberedBatches<Content> {
  const writer = random(16).toString('hex')
  let batch = 0
  let unacknowledged: Content | undefined

  async function send(): Promise<void> {
    if (unacknowledged === undefined) return
    await save(unacknowledged, { writer, batch })
    unacknowledged = undefined
  }

  async function write(): Promise<void> {
    await send()
    unacknowledged = take()
    batch++
    await send()
  }

  const flushes = repeat(clock, FLUSH_MS, write, reports)
  return {
    get unacknowledged() {
      return unacknowledged
    },
    flush: flushes.now,
    async close() {
      await flushes.now()
      await flushes.stop()
    },
  }
}
