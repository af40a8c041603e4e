/** Gives an answer to its connection; what it returns is done when the others of its turn have left, too. */
export type Departure = () => () => void

/** The end of a turn of the event loop, when all that has arrived in it is read. */
export interface Turn {
  /** Handlers run before anything leaves; what they throw is theirs to catch. */
  handle(handler: () => void): void
  leave(departure: Departure): void
}

/**
 * Lets the handlers of a turn run one after the other, then their answers leave, then these are logged.
 * Each write wakes the program on the other side, and each step throws out of the processor's caches what
 * the others need: a busy listener makes a tenth more answers so, an idle one answers as soon as ever.
 */
export function createTurn(): Turn {
  let handlers: (() => void)[] = []
  let departures: Departure[] = []
  let scheduled = false

  function end(): void {
    for (const handler of handlers) handler()
    handlers = []
    const leaving = departures
    departures = []
    scheduled = false
    for (const left of leaving.map((departure) => departure())) left()
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
