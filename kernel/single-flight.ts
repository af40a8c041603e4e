import { setImmediate as nextBatch } from 'node:timers/promises'

/** Runs `work` for a key, or shares the run of others. */
export type SingleFlight<T> = (key: string, work: () => Promise<T>) => Promise<T>

/** The run of a key, and the one after it, which has not begun. */
interface Flight<T> {
  running?: Promise<T> | undefined
  next?: Promise<T> | undefined
}

/**
 * Runs one work of each key at a time. Those who ask meanwhile share the next run, so that no result
 * is older than the question.
 */
export function createSingleFlight<T>(): SingleFlight<T> {
  const flights = new Map<string, Flight<T>>()

  async function run(key: string, flight: Flight<T>, work: () => Promise<T>): Promise<T> {
    await flight.running?.catch(() => undefined)
    // Requests that have arrived by now are read first, so that they share this run.
    await nextBatch()
    flight.running = flight.next
    flight.next = undefined
    try {
      return await work()
    } finally {
      if (flight.next === undefined) flights.delete(key)
    }
  }

  return (key, work) => {
    const flight = flights.get(key) ?? {}
    flights.set(key, flight)
    flight.next ??= run(key, flight, work)
    return flight.next
  }
}
