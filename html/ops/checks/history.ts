import type { Period } from '../../../db/ops/checks.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { Bar, CheckHistory, Hour } from '../../../services/ops/checks/history.ts'
import { lineChart } from '../../chart.ts'
import { countText, facts, listTable, nextLink, section, tableRow, timeTag } from '../../parts.ts'
import { stateBadge } from '../checks.ts'
import { durationText, shortText } from '../layout.ts'
import { axis, dayBar, uptimeText } from './days.ts'

/** What a check's page shows of its past. */
export interface HistoryView {
  history: CheckHistory
  bar: Bar
  /** Each hour of a week, the oldest first. */
  line: readonly Hour[]
}

/** What a check was before: its days, how long it took, and the changes of its state. */
export function historySection({ history, bar, line }: HistoryView): Html {
  const uptimes = Object.entries(history.uptime).map(([days, up]) => {
    return [`Up in ${countText(Number(days), 'day')}`, uptimeText(up)] as const
  })
  const content = html`${facts(Object.fromEntries(uptimes))} ${dayBar(history.check.name, bar)}
    ${axis(`${bar.days.length} days ago`, 'today')}
    <h3>How long it took</h3>
    ${timeLine(line)} ${axis('7 days ago', 'now')} ${periodTable(history)}`
  return section('history-title', 'History', content, { id: 'history', class: 'panel' })
}

function timeLine(line: readonly Hour[]): Html {
  const longest = Math.max(0, ...line.map(({ count }) => count?.ms_max ?? 0))
  const points = line.map(({ hour, count }) => {
    const at = `${hour.toISOString().slice(0, 13).replace('T', ' ')}:00 UTC`
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
    kind: 'feed',
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
