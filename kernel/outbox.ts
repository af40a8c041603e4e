/** Gives an answer to its connection; what it returns is done when the others of its turn have left, too. */
export type Departure = () => () => void

/**
 * Answers that are ready in one turn of the event loop leave together, at its end. Each write wakes the
 * program on the other side, and a write between other work is slower than one behind another: a busy
 * listener makes about a tenth more answers so, an idle one answers as soon as ever.
 */
export function createOutbox(): (departure: Departure) => void {
  let waiting: Departure[] = []

  function leave(): void {
    const departures = waiting
    waiting = []
    for (const done of departures.map((departure) => departure())) done()
  }

  return (departure) => {
    if (waiting.push(departure) === 1) setImmediate(leave)
  }
}
