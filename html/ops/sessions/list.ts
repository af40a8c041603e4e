import type { Session } from '../../../db/ops/sessions.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import { anyOf, filterForm, select, submit } from '../../form.ts'
import {
  countLine,
  countUpTo,
  emptyState,
  listTable,
  rowLink,
  tableRow,
  timeTag,
  type More,
} from '../../parts.ts'
import { costText, durationText, modelText, opsView, statusBadge, type Listed } from '../layout.ts'
import { askedLine } from './prompt.ts'

/** What `/sessions` shows. */
export interface FoundSessions extends Listed<Session> {
  /** Filters; null for all. */
  status: string | null
  trigger: string | null
  /** How many there are; counted up to `MAX_COUNT`. */
  count: number
}

const STATUSES = anyOf('running', 'completed', 'failed', 'timed_out', 'escalated', 'stopped').map(
  ([value, label]) => [value, label.replace('_', ' ')] as const,
)
const TRIGGERS = anyOf('scheduled', 'manual', 'api', 'escalation', 'alert').map(
  ([value, label]) => [value, value === 'api' ? 'API' : label] as const,
)

/** `/sessions`, newest first. */
export function sessionsView(found: FoundSessions): View {
  const { rows, older, status, trigger, count } = found
  const isFiltered = status !== null || trigger !== null
  const content = html`<section id="sessions-results" aria-label="Sessions">
    ${countLine(countUpTo(count, 'session'))}
    ${sessionTable('session-rows', 'Sessions, newest first', rows, {
      isFiltered,
      more: { next: older ?? null, label: 'Older sessions' },
    })}
  </section>`
  return opsView('Sessions', content, { above: sessionFilter(found) })
}

/** What a row shows. */
type SessionRow = Pick<
  Session,
  | 'id'
  | 'status'
  | 'tier'
  | 'model'
  | 'trigger'
  | 'started_at'
  | 'duration_ms'
  | 'cost_usd'
  | 'prompt_text'
>

interface TableOptions {
  /** The session that is marked in the table. */
  current?: number
  isFiltered?: boolean
  more?: More
}

export function sessionTable(
  bodyId: string,
  caption: string,
  sessions: readonly SessionRow[],
  { current, isFiltered = false, more }: TableOptions = {},
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'sessions',
    columns: ['Session', 'Status', 'Trigger', 'Started', 'Took', { number: 'Cost' }],
    rows: sessions.map((session) => sessionRow(session, session.id === current)),
    ...(more !== undefined && { more }),
    whenEmpty: emptyState(
      isFiltered
        ? 'No sessions match these filters.'
        : html`No sessions yet. <a href="/">Start one on the dashboard</a>.`,
    ),
  })
}

function sessionRow(session: SessionRow, isCurrent: boolean): Html {
  const { id, status, tier, model, trigger, started_at, duration_ms, cost_usd } = session
  const current = isCurrent ? 'page' : undefined
  const asked = askedLine(session.prompt_text)
  return tableRow(
    { 'data-id': id },
    {
      type: html`${rowLink(`/sessions/${id}`, asked, { 'aria-current': current })}
        <span class="detail">
          ${isCurrent ? html`<strong>This session</strong>` : html`Session ${id}`}, tier ${tier},
          ${modelText(model)}
        </span>`,
      verify: statusBadge(status),
      trigger: trigger === 'api' ? 'API' : trigger,
      when: timeTag(started_at),
      'when took': duration_ms === null ? '…' : durationText(duration_ms),
      number: cost_usd === null ? html`<span class="muted">–</span>` : costText(cost_usd),
    },
  )
}

function sessionFilter({ status, trigger }: FoundSessions): Html {
  const form = { id: 'filter', typed: { status: status ?? '', trigger: trigger ?? '' } }
  return filterForm(
    'Sessions',
    { path: '/sessions', results: 'sessions-results' },
    html`${select(form, 'status', 'Status', STATUSES, 'half')}
    ${select(form, 'trigger', 'Trigger', TRIGGERS, 'half')} ${submit('Filter', {})}`,
  )
}
