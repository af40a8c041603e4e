/** Work that waits for a place or has one. */
interface Work {
  /** The peer that it connects to. */
  peer: string
  run: () => Promise<void>
}

/** How much may run at a time, and how much of that for one peer. */
interface Bounds {
  max: number
  maxOfPeer: number
}

/** Places for work that runs side by side. */
export type Slots = ReturnType<typeof createSlots>

/**
 * Runs work side by side within bounds. Work for one peer holds up no other peer. `run` must not reject.
 */
export function createSlots({ max, maxOfPeer }: Bounds) {
  const waiting = new Map<string, Work[]>()
  const running = new Map<string, number>()
  let total = 0

  function begin(): void {
    for (const [peer, queue] of waiting) {
      while (queue.length > 0 && total < max && (running.get(peer) ?? 0) < maxOfPeer) {
        const work = queue.shift()
        if (work !== undefined) void runOne(work)
      }
      if (queue.length === 0) waiting.delete(peer)
      if (total >= max) return
    }
  }

  async function runOne({ peer, run }: Work): Promise<void> {
    total++
    running.set(peer, (running.get(peer) ?? 0) + 1)
    await run()
    total--
    const left = (running.get(peer) ?? 1) - 1
    if (left === 0) running.delete(peer)
    else running.set(peer, left)
    begin()
  }

  return {
    /** Runs it now, or when there is a place. */
    add(work: Work): void {
      const queue = waiting.get(work.peer)
      if (queue === undefined) waiting.set(work.peer, [work])
      else queue.push(work)
      begin()
    },
    /** How much more can begin now, for different peers. */
    free: () => Math.max(0, max - total),
  }
}
