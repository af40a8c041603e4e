import { Session } from 'node:inspector'

/** A window in which the thread worked for less than this part of the time is idle. */
const WINDOW_MS = 10_000
const IDLE_PART = 0.05
/** Less work than this leaves little to collect. */
const WORK_MS = 500

/**
 * Collects this thread's garbage each time the thread has become idle after work. V8 collects when
 * memory is asked for, so that an idle process would keep what its start or a load has left.
 */
export function collectWhenIdle(): void {
  let last = performance.eventLoopUtilization()
  // The start was work.
  let workedMs = WORK_MS
  setInterval(() => {
    const { active, utilization } = performance.eventLoopUtilization(last)
    last = performance.eventLoopUtilization()
    workedMs += active
    if (utilization > IDLE_PART || workedMs < WORK_MS) return
    workedMs = 0
    collectGarbage()
  }, WINDOW_MS).unref()
}

/** The documented way to ask for a collection without a flag of Node. */
function collectGarbage() {
  const session = new Session()
  session.connect()
  // Disconnecting within the callback deadlocks: V8 holds a lock there.
  session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()))
}
