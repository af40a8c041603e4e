import { repeat, type Reports } from './repeat.ts'
import type { Clock } from './time.ts'
import type { RandomBytes } from './tokens.ts'

/** Tells the database which batches it has applied already. */
export interface BatchNumber {
  /** One process. */
  readonly writer: string
  /** Rises with every batch of the writer. */
  readonly batch: number
}

export interface NumberedBatchesOptions<Content> {
  readonly clock: Clock
  readonly random: RandomBytes
  /** Takes what has gathered since the last call; undefined when there is nothing. */
  readonly take: () => Content | undefined
  /** Applies a batch, unless one with its number or a higher one of the same writer was applied. */
  readonly save: (content: Content, number: BatchNumber) => Promise<void>
  readonly reports: Reports
}

export interface NumberedBatches<Content> {
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
