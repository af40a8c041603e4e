import type { ClickKind, DayClicks } from '../../db/links/rows.ts'
import { html, type Html } from '../../kernel/html.ts'

const HEIGHT = 60
/** From the ground up; the words are those of the legend, for many and for one. */
const KINDS: readonly (readonly [ClickKind, string, string])[] = [
  ['human', 'people', 'person'],
  ['bot', 'programs', 'program'],
  ['preview', 'previews', 'preview'],
]

/** How often a link was visited, by day and kind. */
export interface ClicksView {
  /** The days that are told, oldest first, such as `2026-01-31`. */
  readonly days: readonly string[]
  readonly clicks: readonly DayClicks[]
}

/** The visits of the last days as bars, and the same as a table for those who don't see bars. */
export function clickChart(view: ClicksView): Html {
  const rows = view.days.map((day) => dayOf(day, view.clicks))
  const total = rows.reduce((sum, row) => sum + row.total, 0)
  const peak = Math.max(1, ...rows.map((row) => row.total))
  return html`<section class="panel" aria-labelledby="clicks-title">
    <h2 id="clicks-title">Clicks in ${view.days.length} days</h2>
    <svg
      class="chart clicks"
      viewBox="0 0 ${rows.length * 10} ${HEIGHT}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${summary(rows, total)}"
    >
      ${rows.map((row, at) => bar(row, at, peak))}
    </svg>
    <ul class="legend">
      ${KINDS.map(
        ([kind, many, one]) =>
          html`<li>
            <span class="swatch ${kind}"></span>${counted(sumOf(rows, kind), many, one)}
          </li>`,
      )}
    </ul>
    ${total > 0 && table(rows.filter((row) => row.total > 0))}
  </section>`
}

interface Day {
  readonly day: string
  readonly total: number
  readonly by: Readonly<Record<ClickKind, number>>
}

function dayOf(day: string, clicks: readonly DayClicks[]): Day {
  const by = { human: 0, bot: 0, preview: 0 }
  for (const row of clicks) if (row.day === day) by[row.kind] += row.clicks
  return { day, by, total: by.human + by.bot + by.preview }
}

function sumOf(rows: readonly Day[], kind: ClickKind): number {
  return rows.reduce((sum, { by }) => sum + by[kind], 0)
}

function counted(count: number, many: string, one: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/** The kinds of one day above each other; a day without a visit keeps a line, so that a scale shows. */
function bar({ day, total, by }: Day, at: number, peak: number): Html {
  const x = at * 10 + 1
  let top = HEIGHT
  const parts = KINDS.filter(([kind]) => by[kind] > 0).map(([kind]) => {
    const height = Math.max(1, (by[kind] / peak) * (HEIGHT - KINDS.length))
    top -= height
    return html`<rect
      class="${kind}"
      x="${x}"
      y="${top.toFixed(1)}"
      width="8"
      height="${height.toFixed(1)}"
    ></rect>`
  })
  const none = html`<rect class="none" x="${x}" y="${HEIGHT - 1}" width="8" height="1"></rect>`
  return html`<g><title>${day}: ${total}</title>${parts.length === 0 ? none : parts}</g>`
}

function summary(rows: readonly Day[], total: number): string {
  if (total === 0) return `No clicks in ${rows.length} days`
  const best = rows.reduce((most, row) => (row.total > most.total ? row : most))
  return `Clicks by day: ${total} in all, at most ${best.total} on ${best.day}`
}

function table(rows: readonly Day[]): Html {
  return html`<details>
    <summary>Clicks by day as a table</summary>
    <table>
      <caption class="hidden">
        Clicks by day (UTC)
      </caption>
      <thead>
        <tr>
          <th scope="col">Day (UTC)</th>
          ${KINDS.map(([, label]) => html`<th scope="col">${label}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          ({ day, by }) =>
            html`<tr>
              <th scope="row">${day}</th>
              ${KINDS.map(([kind]) => html`<td class="number">${by[kind]}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </details>`
}
