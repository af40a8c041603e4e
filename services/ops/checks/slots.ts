/** Work that waits for its place, or has it. */
interface Work {
  address: string
  run: () => Promise<void>
}

/** How much may run at a time, and how much of that at one address. */
interface Bounds {
  max: number
  maxOfAddress: number
}

/** Places for work that runs side by side. */
export type Slots = ReturnType<typeof createSlots>

/**
 * Runs work side by side within bounds. What waits for a full address holds up no other address. `run` must not
 * reject.
 */
export function createSlots({ max, maxOfAddress }: Bounds) {
  const waiting = new Map<string, Work[]>()
  const running = new Map<string, number>()
  let total = 0

  function begin(): void {
    for (const [address, queue] of waiting) {
      while (queue.length > 0 && total < max && (running.get(address) ?? 0) < maxOfAddress) {
        const work = queue.shift()
        if (work !== undefined) void runOne(work)
      }
      if (queue.length === 0) waiting.delete(address)
      if (total >= max) return
    }
  }

  async function runOne({ address, run }: Work): Promise<void> {
    total++
    running.set(address, (running.get(address) ?? 0) + 1)
    await run()
    total--
    const left = (running.get(address) ?? 1) - 1
    if (left === 0) running.delete(address)
    else running.set(address, left)
    begin()
  }

  return {
    /** Runs it now, or when there is a place. */
    add(work: Work): void {
      const queue = waiting.get(work.address)
      if (queue === undefined) waiting.set(work.address, [work])
      else queue.push(work)
      begin()
    },
    /** How much more could begin now, at different addresses. */
    free: () => Math.max(0, max - total),
  }
}
