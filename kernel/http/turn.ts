/** Gives an answer to its connection; what it returns is done when the others of its turn have left, too. */
export type Departure = () => () => void

/** The end of a turn of the event loop, when all that has arrived in it is read. */
export interface Turn {
  /** Handlers run before anything leaves. */
  handle(handler: () => void): void
  leave(departure: Departure): void
}

/** Handlers of one turn; others wait for the next one, so that other listeners are served in between. */
const MOST_HANDLERS = 256

/**
 * Lets the handlers of a turn run one after the other, then their answers leave, then these are logged.
 * Each write wakes the program on the other side, and each step throws out of the processor's caches what
 * the others need: a busy listener makes a tenth more answers so, an idle one answers as soon as ever.
 * What one of them throws goes to `failed`: the others of its turn must not be lost with it.
 */
export function createTurn(failed: (error: unknown) => void): Turn {
  let handlers: (() => void)[] = []
  let departures: Departure[] = []
  let scheduled = false

  function attempt<T>(work: () => T): T | undefined {
    try {
      return work()
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  function end(): void {
    const later = handlers.splice(MOST_HANDLERS)
    for (const handler of handlers) attempt(handler)
    handlers = later
    const leaving = departures
    departures = []
    scheduled = false
    if (handlers.length > 0) schedule()
    for (const left of leaving.map(attempt)) if (left !== undefined) attempt(left)
  }
  function schedule(): void {
    if (scheduled) return
    scheduled = true
    setImmediate(end)
  }

  return {
    handle(handler) {
      handlers.push(handler)
      schedule()
    },
    leave(departure) {
      departures.push(departure)
      schedule()
    },
  }
}
