/** How many calls of one endpoint run at a time, and how many of them may only wait. */
const CALLS = 32
const WAITS = 8

/** Counts the running calls of each endpoint. */
export interface Limits {
  /** Takes a place; undefined when all are taken, else what gives it back. */
  enter(endpoint: string, waits: boolean): (() => void) | undefined
}

export function createLimits(): Limits {
  const running = new Map<string, { calls: number; waits: number }>()
  return {
    enter(endpoint, waits) {
      const count = running.get(endpoint) ?? { calls: 0, waits: 0 }
      if (count.calls >= CALLS || (waits && count.waits >= WAITS)) return undefined
      running.set(endpoint, count)
      count.calls++
      if (waits) count.waits++
      return () => {
        count.calls--
        if (waits) count.waits--
        if (count.calls === 0) running.delete(endpoint)
      }
    },
  }
}
