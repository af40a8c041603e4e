/** Writes a response, and returns what is left to do after it: its log line. */
export type Write = () => () => void

/**
 * Handlers of one pass; others wait for the next one, so that other listeners are served in
 * between.
 */
const MAX_HANDLERS = 256

/**
 * Runs the handlers of a pass one after the other, then writes their responses, then their log
 * lines. Each write wakes the client's process, and each kind of step displaces the others from
 * the processor's caches: in batches a busy listener answers a quarter more redirects
 * (bench/RESULTS.md). An error in one step goes to `failed`, so that it does not hold up others of
 * the batch.
 */
export function createBatch(failed: (error: unknown) => void) {
  let handlers: (() => void)[] = []
  let writes: Write[] = []
  let scheduled = false

  function attempt<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  function run(): void {
    const later = handlers.splice(MAX_HANDLERS)
    for (const handler of handlers) attempt(handler)
    handlers = later
    const ready = writes
    writes = []
    scheduled = false
    if (handlers.length > 0) schedule()
    for (const log of ready.map(attempt)) if (log !== undefined) attempt(log)
  }

  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(run)
  }

  return {
    /** Runs a handler at the end of the pass. */
    handle(handler: () => void): void {
      handlers.push(handler)
      schedule()
    },
    /** Writes a response when the handlers of the pass have run. */
    write(write: Write): void {
      writes.push(write)
      schedule()
    },
  }
}
