import { peerOf, type Check } from './run.ts'

/** Work that waits for a place or has one. */
interface Work {
  /** The peer that it connects to. */
  peer: string
  run: () => Promise<void>
}

/** How many checks wait for the network at a time, and for one peer. */
const NETWORK = { max: 512, maxOfPeer: 32 }
/** How many checks start programs or read this machine at a time. */
const PROGRAMS = { max: 16, maxOfPeer: 16 }

/** How much may run at a time, and how much of that for one peer. */
interface Bounds {
  max: number
  maxOfPeer: number
}

/**
 * Runs work side by side within bounds. Work for one peer holds up no other peer. `run` must not reject.
 */
function createSlots({ max, maxOfPeer }: Bounds) {
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

/** The places in which checks run: some for those that wait for the network, some for all others. */
export function createPlaces() {
  const network = createSlots(NETWORK)
  const programs = createSlots(PROGRAMS)
  return {
    /** Runs it now, or when there is a place for such a check. `run` must not reject. */
    add(check: Check, run: () => Promise<void>): void {
      const peer = peerOf(check)
      const slots = peer === undefined ? programs : network
      slots.add({ peer: peer ?? '', run })
    },
    /** How many more checks that start programs or read this machine can begin now. */
    freePrograms: programs.free,
  }
}

/** Runs checks within these bounds, and gives what each of them found, in the same order. */
export function runSideBySide<T extends { check: Check }, R>(
  checks: readonly T[],
  run: (one: T) => Promise<R>,
): Promise<R[]> {
  const places = createPlaces()
  const found = (one: T) =>
    new Promise<R>((resolve, reject) => {
      places.add(one.check, () => run(one).then(resolve, reject))
    })
  return Promise.all(checks.map(found))
}
