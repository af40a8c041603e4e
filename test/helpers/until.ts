import { setTimeout as pause } from 'node:timers/promises'

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>

/**
 * Waits until `condition` gives something truthy, and gives that back. `what` completes the sentence
 * "waited for …". A condition that throws counts as not yet; its last error is named. A condition that costs
 * something (a request, a query) and takes seconds gets a longer pause.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  timeoutMs = 10_000,
  pauseMs = 20,
): Promise<Truthy<T>> {
  const deadline = performance.now() + timeoutMs
  let last = ''
  for (;;) {
    try {
      const value = await condition()
      if (isTruthy(value)) return value
      last = ''
    } catch (error) {
      last = `: ${error instanceof Error ? error.message : String(error)}`
    }
    if (performance.now() > deadline) throw new Error(`waited ${timeoutMs} ms for ${what}${last}`)
    await pause(pauseMs)
  }
}

function isTruthy<T>(value: T): value is Truthy<T> & T {
  return Boolean(value)
}
