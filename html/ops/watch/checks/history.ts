import type { Period } from '../../../../db/ops/watch/checks.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { Bar, CheckHistory, Hour } from '../../../../services/ops/watch/checks/history.ts'
import { lineChart } from '../../../chart.ts'
import {
  countText,
  facts,
  listTable,
  nextLink,
  section,
  tableRow,
  timeTag,
} from '../../../parts.ts'
import { instantText } from '../../../times.ts'
import { stateBadge } from '../checks.ts'
import { durationText, shortText } from '../../layout.ts'
import { axis, dayBar, hourBar, uptimeText } from './days.ts'

const DAY_MS = 86_400_000

/** What a check's page shows of its past. */
export interface HistoryView {
  history: CheckHistory
  bar: Bar
  /** Each hour of a week, the oldest first. */
  line: readonly Hour[]
}

/** What a check was before: its uptime, how long it took, and the changes of its state. */
export function historySection({ history, bar, line }: HistoryView): Html {
  const { check, uptime, watchedMs } = history
  const uptimes = Object.entries(uptime).map(([days, up]) => {
    const isYoung = watchedMs < Number(days) * DAY_MS
    const of = isYoung ? ` of ${durationText(watchedMs)}` : ''
    const text = up === null ? '–' : `${uptimeText(up)}${of}`
    return [`Up in ${countText(Number(days), 'day')}`, text] as const
  })
  const content = html`<div class="panel">
      ${facts({ ...Object.fromEntries(uptimes), ...timesTaken(line) })}
      <div class="check-charts">
        <div>
          <h3>Last 24 hours</h3>
          ${hourBar(check.name, line, uptime[1])} ${axis('24 hours ago', 'now')}
        </div>
        <div>
          <h3>Last ${bar.days.length} days</h3>
          ${dayBar(check.name, bar)} ${axis(`${bar.days.length} days ago`, 'today')}
        </div>
        <div>
          <h3>How long it took</h3>
          ${timeLine(line)} ${axis('7 days ago', 'now')}
        </div>
      </div>
    </div>
    ${periodTable(history)}`
  return section('history-title', 'History', content, { id: 'history' })
}

/** How long runs took in the hours of a line. */
function timesTaken(line: readonly Hour[]) {
  const counts = line.flatMap(({ count }) => count ?? [])
  const known = counts.map(({ runs, unknown }) => runs - unknown)
  const runs = known.reduce((sum, count) => sum + count, 0)
  if (runs === 0) return {}
  const total = counts.reduce((sum, { ms_mean }, at) => sum + (ms_mean ?? 0) * (known[at] ?? 0), 0)
  const longest = Math.max(...counts.map(({ ms_max }) => ms_max ?? 0))
  return { 'Took in 7 days': `${Math.round(total / runs)} ms, at most ${longest} ms` }
}

function timeLine(line: readonly Hour[]): Html {
  const longest = Math.max(0, ...line.map(({ count }) => count?.ms_max ?? 0))
  const points = line.map(({ hour, count }) => {
    const at = instantText(hour)
    const { ms_mean = null, ms_min = null, ms_max = null } = count ?? {}
    if (ms_mean === null) return { title: `${at}: not checked`, value: null }
    return { title: `${at}: ${ms_mean} ms, from ${ms_min} to ${ms_max}`, value: ms_mean }
  })
  return lineChart(`How long it took in ${line.length} hours, at most ${longest} ms`, points)
}

function periodTable({ check, periods, older }: CheckHistory): Html {
  const table = listTable({
    bodyId: 'period-rows',
    caption: 'Changes of its state',
    kind: 'dense periods',
    columns: ['State', 'Began', { number: 'Lasted' }, 'Message'],
    rows: periods.map(periodRow),
  })
  const next = older === null ? undefined : `/checks/${check.id}?before=${older}`
  return html`${table} ${nextLink(next, 'Earlier changes')}`
}

function periodRow({ state, began_at, ended_at, message, last_message }: Period): Html {
  const isSame = last_message === null || last_message === message
  const end = isSame ? '' : `; at its end: ${last_message}`
  const ms = ended_at === null ? undefined : ended_at.getTime() - began_at.getTime()
  return tableRow(
    {},
    {
      verify: stateBadge(state),
      when: timeTag(began_at),
      number: ms === undefined ? 'lasts' : durationText(ms),
      message: shortText(`${message}${end}`, 300),
    },
  )
}
