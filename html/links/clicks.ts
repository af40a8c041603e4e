import type { ClickKind, DayClicks } from '../../db/links/visits.ts'
import { html, type Html } from '../../kernel/html.ts'
import { barChart } from '../chart.ts'

const HEIGHT = 60

/** From the ground up; with the words of the legend, for many and for one. */
const KINDS: readonly (readonly [ClickKind, string, string])[] = [
  ['human', 'people', 'person'],
  ['bot', 'programs', 'program'],
  ['preview', 'previews', 'preview'],
]

/** How often a link was visited, by day and kind. */
export interface ClicksView {
  /** The days to show, oldest first, such as `2026-01-31`. */
  readonly days: readonly string[]
  readonly clicks: readonly DayClicks[]
}

interface Day {
  readonly day: string
  readonly total: number
  readonly by: Readonly<Record<ClickKind, number>>
}

/** The visits of the last days as bars, and as a table for people who don't see bars. */
export function clickChart(view: ClicksView): Html {
  const rows = view.days.map((day) => dayOf(day, view.clicks))
  const total = rows.reduce((sum, row) => sum + row.total, 0)
  const bars = rows.map(({ day, by }) => ({
    label: day,
    parts: KINDS.map(([kind]) => ({ kind, value: by[kind] })),
  }))
  return html`<section class="panel" aria-labelledby="clicks-title">
    <h2 id="clicks-title">Clicks in ${view.days.length} days</h2>
    ${barChart(summary(rows, total), bars, { height: HEIGHT, kind: 'clicks' })}
    <ul class="legend">
      ${KINDS.map(([kind, many, one]) => {
        const count = rows.reduce((sum, { by }) => sum + by[kind], 0)
        return html`<li>
          <span class="swatch ${kind}"></span>${count} ${count === 1 ? one : many}
        </li>`
      })}
    </ul>
    ${total > 0 && table(rows.filter((row) => row.total > 0))}
  </section>`
}

function dayOf(day: string, clicks: readonly DayClicks[]): Day {
  const by = { human: 0, bot: 0, preview: 0 }
  for (const row of clicks) if (row.day === day) by[row.kind] += row.clicks
  return { day, by, total: by.human + by.bot + by.preview }
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
