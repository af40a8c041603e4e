/** Time as a parameter: the present, and timers that never keep the process alive by themselves. */
export interface Clock {
  now(): Date
  /** Calls back each `ms` until the returned function is called. */
  every(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => new Date(),
  every(ms, callback) {
    const timer = setInterval(callback, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
}
