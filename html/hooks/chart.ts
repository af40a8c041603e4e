import type { Activity } from '../../db/hooks/providers.ts'
import { html, type Html } from '../../kernel/html.ts'

const HOUR_MS = 3_600_000
const HOURS = 24
const HEIGHT = 40

/**
 * Events per hour of one provider as 24 bars, the last one being the hour of `now`. Each chart has
 * a scale of its own, so its text says how many the highest bar stands for.
 */
export function activityChart(provider: string, activity: readonly Activity[], now: Date): Html {
  const counts = hourly(provider, activity, now)
  const peak = Math.max(...counts)
  const first = Math.floor(now.getTime() / HOUR_MS) - (HOURS - 1)
  return html`<svg
    class="chart"
    viewBox="0 0 ${HOURS * 10} ${HEIGHT}"
    preserveAspectRatio="none"
    role="img"
    aria-label="${summary(counts, peak, first)}"
  >
    ${counts.map((count, i) => bar(i, count, peak, hourText(first + i)))}
  </svg>`
}

/** Events in each of the 24 hours up to the hour of `now`, oldest first. */
export function hourly(
  provider: string,
  activity: readonly Activity[],
  now: Date,
): readonly number[] {
  const counts = Array.from({ length: HOURS }, () => 0)
  const last = Math.floor(now.getTime() / HOUR_MS)
  for (const { provider: name, hour, events } of activity) {
    const index = HOURS - 1 - (last - Math.floor(hour.getTime() / HOUR_MS))
    // The window of 24 hours begins within a 25th one, which has no bar.
    if (name === provider && index >= 0 && index < HOURS) {
      counts[index] = (counts[index] ?? 0) + events
    }
  }
  return counts
}

function bar(index: number, count: number, peak: number, hour: string): Html {
  // An hour without events keeps a line of its own, so that the reader sees a scale and no gap.
  const height = count === 0 ? 1 : Math.max(3, Math.round((count / peak) * HEIGHT))
  return html`<rect
    class="${count === 0 ? 'none' : 'some'}"
    x="${index * 10 + 1}"
    y="${HEIGHT - height}"
    width="8"
    height="${height}"
  >
    <title>${hour}: ${count}</title>
  </rect>`
}

function summary(counts: readonly number[], peak: number, first: number): string {
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return 'No events in the last 24 hours'
  const at = hourText(first + counts.indexOf(peak))
  return `Events per hour over 24 hours: ${total} in all, at most ${peak} at ${at}`
}

function hourText(hour: number): string {
  return `${new Date(hour * HOUR_MS).toISOString().slice(11, 16)} UTC`
}
