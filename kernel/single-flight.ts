import { setImmediate as nextPass } from 'node:timers/promises'

/** The work of a key that runs, and the one that has not begun, which callers can join. */
interface Flight<T> {
  running?: Promise<T> | undefined
  next?: Promise<T> | undefined
}

/** A result that is given again while nothing is known to have changed. */
interface Kept<T> {
  result: Promise<T>
  version: number
  since: number
}

export interface Freshness {
  /** Changes when no earlier result may be given any more. */
  version: () => number
  /** Milliseconds since some moment, as a clock counts them. */
  elapsed: () => number
}

/** The result for a key: a fresh one, or that of `work`. */
export type SingleFlight<T> = (key: string, work: () => Promise<T>) => Promise<T>

/** The version does not tell of other processes' changes: they are seen after this time. */
const MAX_KEPT_MS = 100
const MAX_KEPT = 16

/**
 * Callers that ask for the same key share one result: never one that was begun before the version
 * changed, and none older than a tenth of a second. One work of a key runs at a time. Callers that
 * come meanwhile get the result, or the error, of the next one.
 */
export function createSingleFlight<T>({ version, elapsed }: Freshness): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>()
  const results = new Map<string, Kept<T>>()

  async function run(key: string, flight: Flight<T>, work: () => Promise<T>): Promise<T> {
    await flight.running?.catch(() => undefined)
    // Requests that have arrived by now are read first, so that they can join.
    await nextPass()
    flight.running = flight.next
    flight.next = undefined
    const begun = { version: version(), since: elapsed() }
    try {
      const result = await work()
      keep(key, { ...begun, result: Promise.resolve(result) })
      return result
    } finally {
      if (flight.next === undefined) flights.delete(key)
    }
  }

  function keep(key: string, kept: Kept<T>) {
    results.delete(key)
    results.set(key, kept)
    const [oldest] = results.keys()
    if (results.size > MAX_KEPT && oldest !== undefined) results.delete(oldest)
  }

  return (key, work) => {
    const kept = results.get(key)
    if (kept?.version === version() && elapsed() - kept.since < MAX_KEPT_MS) return kept.result
    const flight = flights.get(key) ?? {}
    flights.set(key, flight)
    flight.next ??= run(key, flight, work)
    return flight.next
  }
}
