import { setTimeout as pause } from 'node:timers/promises'

const PAUSE_MS = 20

const SHOWN_CHARACTERS = 500

let lastSeen = ''

/** Notes what the test has last read of the product, which a wait that fails then shows. */
export function noteSeen(text: string) {
  lastSeen = text.slice(0, SHOWN_CHARACTERS)
}

type Truthy<T> = Exclude<T, false | null | undefined | 0 | ''>

/**
 * Waits until `condition` gives something truthy, and gives that back. `what` completes the sentence
 * "waited for …". A condition that throws counts as not yet. A failure names its last error, and the answer or row
 * that was last read. Pauses are 20 ms;
 * with `longestPauseMs` they grow with the wait, for a condition that costs a request.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  timeoutMs = 30_000,
  longestPauseMs = PAUSE_MS,
): Promise<Truthy<T>> {
  const begin = performance.now()
  let last = ''
  for (;;) {
    try {
      const value = await condition()
      if (isTruthy(value)) return value
      last = ''
    } catch (error) {
      last = `: ${error instanceof Error ? error.message : String(error)}`
    }
    const waited = performance.now() - begin
    if (waited > timeoutMs) {
      const seen = lastSeen === '' ? '' : `; last seen: ${lastSeen}`
      throw new Error(`waited ${timeoutMs} ms for ${what}${last}${seen}`)
    }
    await pause(Math.min(Math.max(PAUSE_MS, waited / 10), longestPauseMs))
  }
}

function isTruthy<T>(value: T): value is Truthy<T> & T {
  return Boolean(value)
}

/** Whole numbers from 0 up to, not including, `below`. */
export type Random = (below: number) => number

/** The same numbers for the same seed. */
export function randomOf(seed: number): Random {
  let state = seed * 7919
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return Math.floor((state / 2 ** 32) * below)
  }
}

/** A seed of the moment, to be said where a test fails; GATEHOUSE_TEST_SEED=… repeats one. */
export function newSeed() {
  return Number(process.env['GATEHOUSE_TEST_SEED'] ?? Date.now() % 2 ** 31)
}
