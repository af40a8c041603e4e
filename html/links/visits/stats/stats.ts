import type { DayClicks, Source } from '../../../../db/links/visits/stats.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import { barChart } from '../../../chart.ts'
import { countText, namedRows, section } from '../../../parts.ts'

/** What is known of the visits of a link. */
export interface LinkStats {
  /** Of the last days, oldest first. */
  clicks: readonly DayClicks[]
  /** In the same days, the most frequent first; empty where only totals are counted. */
  referrers: readonly Source[]
  clients: readonly Source[]
}

/** From the ground up; with the words of the legend, for many and for one. */
const KINDS = [
  ['human', 'people', 'person'],
  ['bot', 'programs', 'program'],
  ['preview', 'previews', 'preview'],
] as const

/** Rows of a table of sources; the others stand in one row. */
const MAX_SOURCES = 10

/** The visits of the last days as bars, and as a table for people who don't see bars. */
export function statsPanel({ clicks: days, referrers, clients }: LinkStats): Html {
  const bars = days.map((clicks) => ({
    label: clicks.day,
    title: `${clicks.day}: ${KINDS.map((kind) => countOf(kind, clicks)).join(', ')}`,
    parts: KINDS.map(([kind]) => ({ kind, value: clicks[kind] })),
  }))
  const clicked = days.filter(({ total }) => total > 0)
  const content = html`${barChart(summary(days), bars, { height: 60, kind: 'clicks' })}
    <ul class="legend">
      ${KINDS.map((kind) => {
        const sum = days.reduce((counted, clicks) => counted + clicks[kind[0]], 0)
        return html`<li>
          <span class="swatch ${kind[0]}"></span>${countOf(kind, { [kind[0]]: sum })}
        </li>`
      })}
    </ul>
    <div class="sources">
      ${sourceTable('Came from', referrers)} ${sourceTable('Came with', clients)}
    </div>
    ${clicked.length > 0 && table(clicked)}`
  return section('clicks-title', html`Clicks in ${days.length} days`, content, { class: 'panel' })
}

function countOf(
  [kind, many, one]: (typeof KINDS)[number],
  clicks: Partial<Record<(typeof KINDS)[number][0], number>>,
): string {
  return countText(clicks[kind] ?? 0, one, many)
}

function summary(days: readonly DayClicks[]): string {
  const all = days.reduce((sum, { total }) => sum + total, 0)
  if (all === 0) return `No clicks in ${days.length} days`
  const best = days.reduce((most, day) => (day.total > most.total ? day : most))
  return `Clicks by day: ${all} in all, at most ${best.total} on ${best.day}`
}

function table(days: readonly DayClicks[]): Html {
  const heads = ['Day (UTC)', ...KINDS.map(([, label]) => label)]
  const rows = days.map((clicks) => [clicks.day, ...KINDS.map(([kind]) => clicks[kind])])
  return html`<details>
    <summary>Clicks by day as a table</summary>
    ${namedRows('Clicks by day (UTC)', heads, rows, 'days')}
  </details>`
}

/** The most frequent sources; the others stand together in the last row. */
function sourceTable(title: string, sources: readonly Source[]): Html | false {
  if (sources.length === 0) return false
  const named = sources.filter(({ name }) => name !== 'other').slice(0, MAX_SOURCES)
  const all = sources.reduce((sum, { visits }) => sum + visits, 0)
  const shown = named.reduce((sum, { visits }) => sum + visits, 0)
  const others = all > shown ? [{ name: 'other', visits: all - shown }] : []
  const rows = [...named, ...others].map(({ name, visits }) => [html`<bdi>${name}</bdi>`, visits])
  return html`<div>${namedRows(title, [title, 'Visits'], rows, 'counts')}</div>`
}
