import { html, type Html } from '../../kernel/html.ts'

const HEIGHT = 40
const STEP = 10

/** A day of a spark line, such as `2026-01-31`. */
export interface DayValue {
  readonly day: string
  readonly value: number
}

/** A figure of the last days as bars, the last one being today. `text` gives a value its unit. */
export function sparkLine(
  title: string,
  days: readonly DayValue[],
  text: (value: number) => string,
): Html {
  const total = days.reduce((sum, { value }) => sum + value, 0)
  const peak = Math.max(...days.map(({ value }) => value))
  const best = days.find(({ value }) => value === peak)
  const label =
    total === 0
      ? `${title}: none in ${days.length} days`
      : `${title} by day: ${text(total)} in ${days.length} days, at most ${text(peak)} on ${best?.day}`
  return html`<article class="tile">
    <h3>${title}</h3>
    <p class="figure"><strong>${text(total)}</strong> in ${days.length} days</p>
    <svg
      class="chart"
      viewBox="0 0 ${days.length * STEP} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${label}"
    >
      ${days.map(({ day, value }, at) => {
        // A day without any keeps a line of its own, so that a scale shows.
        const height = value === 0 ? 1 : Math.max(3, Math.round((value / peak) * HEIGHT))
        return html`<rect
          class="${value === 0 ? 'none' : 'some'}"
          x="${at * STEP + 1}"
          y="${HEIGHT - height}"
          width="${STEP - 2}"
          height="${height}"
        >
          <title>${day}: ${text(value)}</title>
        </rect>`
      })}
    </svg>
    <p class="muted">Today ${text(days.at(-1)?.value ?? 0)}</p>
  </article>`
}
