import { longestSilence } from './watchdog.ts'
import type { Metrics } from '../metrics.ts'
import type { Clock } from '../time.ts'
import { openFiles } from './self.ts'

/** How often the lag of the event loop is measured. */
const LAG_MS = 100

/**
 * Registers the metrics of this process, and measures its event loop until the returned function
 * is called.
 */
export function measureProcess(metrics: Metrics, clock: Clock): () => void {
  // These two have the names that Prometheus recommends for every process.
  metrics.gauge('process_resident_memory_bytes', 'Resident memory of the process.', () => {
    return [[{}, process.memoryUsage.rss()]]
  })
  metrics.gauge('process_open_fds', 'Open files and connections of the process.', () => {
    const open = openFiles()
    return open === undefined ? [] : [[{}, open]]
  })
  metrics.gauge(
    'gatehouse_longest_silence_seconds',
    'The longest time since the start for which the thread that serves all did nothing else.',
    () => [[{}, longestSilence()]],
  )
  const lag = metrics.histogram(
    'gatehouse_event_loop_lag_seconds',
    'How late a timer of the thread that serves all was, ten times a second.',
  )
  const observe = lag.series({})
  let last = clock.elapsed()
  return clock.every(LAG_MS, () => {
    const now = clock.elapsed()
    observe(Math.max(0, now - last - LAG_MS) / 1_000)
    last = now
  })
}
