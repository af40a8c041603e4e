import type { Clock } from './time.ts'

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
