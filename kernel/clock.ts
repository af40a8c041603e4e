/** Time as a parameter: the present, and timers that never keep the process alive by themselves. */
export interface Clock {
  now(): Date
  /** Milliseconds since some moment, for durations: they go on evenly when the clock is set. */
  elapsed(): number
  /** Calls back each `ms` until the returned function is called. */
  every(ms: number, callback: () => void): () => void
}

export const systemClock: Clock = {
  now: () => new Date(),
  elapsed: () => performance.now(),
  every(ms, callback) {
    const timer = setInterval(callback, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
}
