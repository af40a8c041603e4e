import type { EndpointKey } from '../../../../db/hooks/agents/endpoints.ts'

/**
 * The most calls of one endpoint at a time, of tools and the API together, and how many of them may
 * wait for events. Otherwise a token could take all that signed-in people need.
 */
const MAX_CALLS = 32
const MAX_WAITS = 8

/** What admits a call of an endpoint. */
export type AdmitCall = ReturnType<typeof createCallLimit>

/**
 * Counts the running calls of each endpoint. Returns a function that admits a call: it returns
 * what ends the call, or undefined when too many are running.
 */
export function createCallLimit() {
  const running = new Map<string, { calls: number; waits: number }>()
  return ({ name: endpoint }: EndpointKey, waits: boolean) => {
    const count = running.getOrInsertComputed(endpoint, () => ({ calls: 0, waits: 0 }))
    if (count.calls >= MAX_CALLS) return undefined
    if (waits && count.waits >= MAX_WAITS) return undefined
    count.calls++
    if (waits) count.waits++
    return () => {
      count.calls--
      if (waits) count.waits--
      if (count.calls === 0) running.delete(endpoint)
    }
  }
}
