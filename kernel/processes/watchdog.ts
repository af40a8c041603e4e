import { Worker } from 'node:worker_threads'
import { assetText, inExecutable } from '../assets.ts'
import { messageOf, type Log, type LogFields } from '../log.ts'

/** The asset that only the executable has: the worker in one piece. */
export const WATCHDOG_WORKER = 'watchdog.mjs'

/** How often this thread gives a sign of life, and how often the worker looks. */
export const TICK_MS = 100

/** The `workerData` of the worker: what both threads see. */
export interface Watched {
  /** By `NUMBER`. */
  numbers: Int32Array
  /** What began last, as `noteBegun` writes it. */
  begun: Uint8Array
  /** After so long a silence the process is ended. */
  endAfterMs: number
  /** What each line of its log has. */
  common: LogFields | undefined
}

/** The places in `numbers`. */
export const NUMBER = { signs: 0, longestMs: 1, begunBytes: 2 } as const

const numbers = new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT))
const begun = new Uint8Array(new SharedArrayBuffer(256))
const encoder = new TextEncoder()

/**
 * Notes what this thread begins, so that the watchdog can tell it: a request's method and route,
 * or the name of a job. Each request asks for it, so it writes some bytes and no more.
 */
export function noteBegun(what: string, requestId = ''): void {
  numbers[NUMBER.begunBytes] = encoder.encodeInto(`${what}\n${requestId}`, begun).written
}

/** The longest silence of which the watchdog has told, in seconds. */
export function longestSilence(): number {
  return (numbers[NUMBER.longestMs] ?? 0) / 1_000
}

/**
 * Starts the worker that watches this thread: what holds the thread holds all services. It tells
 * of each silence of a second, and ends the process after one of `endAfterSeconds`. Gives the
 * function that ends the watch: the end of a process is silent. The worker writes its own log,
 * whose lines have the `common` fields, too.
 */
export function startWatchdog(
  log: Log,
  endAfterSeconds: number,
  common?: LogFields,
): () => Promise<unknown> {
  const watched: Watched = { numbers, begun, endAfterMs: endAfterSeconds * 1_000, common }
  const options = {
    workerData: watched,
    // It needs few objects, and a thread's heap grows to what it may have.
    resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
  }
  const worker = inExecutable
    ? new Worker(assetText(WATCHDOG_WORKER), { ...options, eval: true })
    : new Worker(new URL('./watchdog-worker.ts', import.meta.url), options)
  worker.on('error', (error) => log.error('watchdog ended', { error: messageOf(error) }))
  worker.unref()
  setInterval(() => Atomics.add(numbers, NUMBER.signs, 1), TICK_MS).unref()
  return () => worker.terminate()
}
