import { Unavailable } from './fault.ts'
import { messageOf, type Log, type LogFields } from './log.ts'
import { pause, type Clock } from './time.ts'
import type { RandomBytes } from './tokens.ts'
import { noteBegun } from './processes/watchdog.ts'

/** Work that is done again and again, never twice at a time. */
export interface Repeat {
  /** Does it now, or once more after the run that is under way; resolves when that is over. */
  now(): Promise<void>
  /** Stops it; resolves when the running work has ended. */
  stop(): Promise<void>
}

/** Called once when the work begins to fail, and once when it works again. */
export interface Reports {
  fails: (error: unknown) => void
  works: () => void
}

/** Reports to the log; both lines have the fields of `about`. */
export function reportsTo(to: Log, fails: string, works: string, about: LogFields = {}): Reports {
  return {
    fails: (error) => to.warn(fails, { ...about, error: messageOf(error) }),
    works: () => to.info(works, about),
  }
}

/**
 * Does some work every `ms`, first after `ms`, and never twice at a time. `work` can ask whether it
 * was stopped meanwhile. The watchdog's line has its name. Without `reports` nobody hears of
 * failures.
 */
export function repeat(
  clock: Clock,
  ms: number,
  name: string,
  work: (isStopped: () => boolean) => Promise<void>,
  reports?: Reports,
): Repeat {
  let running: Promise<void> | undefined
  let next: Promise<void> | undefined
  let failing = false
  let stopped = false

  async function run() {
    noteBegun(name)
    try {
      await work(() => stopped)
      if (failing) reports?.works()
      failing = false
    } catch (error) {
      if (!failing) reports?.fails(error)
      failing = true
    }
  }

  function begin() {
    running ??= run().finally(() => (running = undefined))
    return running
  }

  async function beginNext() {
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

const MINUTE_MS = 60_000

/**
 * Counts by kind what strangers can cause without end. `write` gets the counts at the first time,
 * and then once a minute while it goes on.
 */
export function createTally<Kind extends string>(
  kinds: readonly Kind[],
  write: (counts: Readonly<Record<Kind, number>>) => void,
): (kind: Kind) => void {
  const none = () => Object.fromEntries(kinds.map((kind) => [kind, 0])) as Record<Kind, number>
  let counts = none()
  let next: NodeJS.Timeout | undefined

  function tell() {
    next = undefined
    if (kinds.every((kind) => counts[kind] === 0)) return
    write(counts)
    counts = none()
    next = setTimeout(tell, MINUTE_MS).unref()
  }
  return (kind) => {
    counts[kind]++
    if (next === undefined) tell()
  }
}

interface RetryOptions {
  /** Attempts in all, over every call. */
  tries: number
  pauseMs: number
  /** Once aborted, the next failure is final. */
  signal: AbortSignal
  /** An attempt has failed, and another one follows. */
  onRetry?: (error: unknown) => void
}

/** Does a piece of work, again and again while it fails for want of the database. */
export type Retry = <T>(work: () => Promise<T>) => Promise<T>

/** Short outages of the database must not lose what is written last. Any other error is final. */
export function retryWhileUnavailable(options: RetryOptions): Retry {
  const { tries, pauseMs, signal, onRetry } = options
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
      await pause(pauseMs, signal)
    }
  }
}

/** Removes old rows: every hour, at the start and after a change of settings. */
export type Pruning = ReturnType<typeof startPruning>

/**
 * Repeats a batch that removes a little until it gives 0: there is nothing left to do. Gives the
 * sum of what the batches gave.
 */
export type InBatches = (batch: () => Promise<number>) => Promise<number>

const HOUR_MS = 3_600_000

/** Small batches, each a statement of its own: nobody waits long for one. */
export const PRUNE_BATCH = 500
const LONGEST_REST_MS = 1_000

/**
 * Leaves the database to others for as long as a batch took, a second at most; less when the
 * signal is aborted.
 */
export function restAfter(batchMs: number, signal: AbortSignal): Promise<void> {
  return pause(Math.min(batchMs, LONGEST_REST_MS), signal)
}

/** Prunes by `run`, which leaves off after the present batch when the program stops. */
export function startPruning(
  clock: Clock,
  log: Log,
  run: (inBatches: InBatches) => Promise<void>,
) {
  const closing = new AbortController()
  async function inBatches(batch: () => Promise<number>) {
    let total = 0
    for (;;) {
      const began = clock.elapsed()
      const removed = closing.signal.aborted ? 0 : await batch()
      if (removed === 0) return total
      total += removed
      await restAfter(clock.elapsed() - began, closing.signal)
    }
  }
  const reports = reportsTo(log, 'prune failed', 'prune works again')
  const runs = repeat(clock, HOUR_MS, 'retention', () => run(inBatches), reports)
  return {
    /** Starts a run, or another one after the present run. */
    prune: () => void runs.now(),
    /** Resolves when the present run is over. */
    close() {
      closing.abort()
      return runs.stop()
    },
  }
}

const SLACK_MS = 60_000
const BELIEVED_AFTER_MS = 24 * 3_600_000

/**
 * The present for what removes things by age: a clock that has jumped ahead, while this process
 * runs, is believed after a day, so that there is time to set it right. A clock that goes back is
 * believed at once.
 */
export function openSteadyTime(clock: Clock): () => Date {
  const ahead = () => clock.now().getTime() - clock.elapsed()
  let believed = ahead()
  let doubtedSince: number | undefined
  return () => {
    const [seen, elapsed] = [ahead(), clock.elapsed()]
    if (seen <= believed + SLACK_MS) doubtedSince = undefined
    else doubtedSince ??= elapsed
    if (doubtedSince === undefined || elapsed - doubtedSince >= BELIEVED_AFTER_MS) believed = seen
    return new Date(believed + elapsed)
  }
}

/** Tells the database which batches it has applied already. */
interface BatchNumber {
  /** One process. */
  writer: string
  /** Rises with every batch of the writer. */
  batch: number
}

interface NumberedBatchesOptions<Content> {
  clock: Clock
  /** Of the job that writes them. */
  name: string
  random: RandomBytes
  /** Takes what has gathered since the last call, in batches that hold the database shortly. */
  take: () => Iterable<Content>
  /**
   * Applies a batch, unless one with its number or a higher one of the same writer was applied.
   */
  save: (content: Content, number: BatchNumber) => Promise<void>
  reports: Reports
}

const FLUSH_MS = 1_000

/**
 * Writes what gathers in memory once every second. If an acknowledgement is lost, the same batch
 * is resent with its number and applied at most once. Between two batches the database is left to
 * others for as long as the first took.
 */
export function startNumberedBatches<Content>(options: NumberedBatchesOptions<Content>) {
  const { clock, name, random, take, save, reports } = options
  const writer = random(16).toString('hex')
  const closing = new AbortController()
  let batch = 0
  let taken: Iterator<Content> = [].values()
  /** The batch without an acknowledgement: in flight, or kept because the database failed. */
  let unacknowledged: Content | undefined

  function nextBatch() {
    const next = taken.next()
    unacknowledged = next.done === true ? undefined : next.value
    batch++
  }

  async function sendTaken() {
    while (unacknowledged !== undefined) {
      const began = clock.elapsed()
      await save(unacknowledged, { writer, batch })
      nextBatch()
      if (unacknowledged === undefined) return
      await restAfter(clock.elapsed() - began, closing.signal)
    }
  }

  async function write() {
    // What an earlier run could not write.
    await sendTaken()
    taken = take()[Symbol.iterator]()
    nextBatch()
    await sendTaken()
  }

  const flushes = repeat(clock, FLUSH_MS, name, write, reports)
  return {
    /** Names this process in the database. */
    writer,
    /** Writes now what has gathered; resolves when that has succeeded or failed. */
    flush: flushes.now,
    /** Writes the rest without rests, and no more afterwards. */
    async close() {
      closing.abort()
      await flushes.now()
      await flushes.stop()
    },
  }
}
