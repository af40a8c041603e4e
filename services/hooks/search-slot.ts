/** One slot for the steps of many searches: one step runs at a time, the others queue for it. */
export interface SearchSlot {
  enter(): SlotPlace
}

/** A place in the queue. */
export interface SlotPlace {
  /** Resolves when all places before this one were released. */
  readonly free: Promise<void>
  /** Must be called once, also by a search that gives up waiting: it lets nobody pass those before it. */
  readonly release: () => void
}

export function createSearchSlot(): SearchSlot {
  let last = Promise.resolve()
  return {
    enter() {
      const free = last
      const { promise: released, resolve: release } = Promise.withResolvers<void>()
      last = free.then(() => released)
      return { free, release }
    },
  }
}
