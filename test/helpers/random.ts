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
export function newSeed(): number {
  return Number(process.env['GATEHOUSE_TEST_SEED'] ?? Date.now() % 2 ** 31)
}
