import type { Session, Sums } from '../../../../db/ops/agent/sessions.ts'
import { html, type Html } from '../../../../kernel/html.ts'
import type { View } from '../../../../kernel/http/view.ts'
import type { RangeName } from '../../../../services/ops/agent/sessions/ranges.ts'
import { anyOf, field, filterForm, select, submit } from '../../../form.ts'
import {
  countLine,
  countUpTo,
  disclosed,
  emptyState,
  listTable,
  rowLink,
  tableRow,
  timeTag,
  MAX_COUNT,
} from '../../../parts.ts'
import { zoneField } from '../../../times.ts'
import {
  costText,
  durationText,
  modelText,
  opsView,
  statusBadge,
  type Listed,
} from '../../layout.ts'
import { askedLine } from './prompt.ts'

/** What `/sessions` shows. */
interface FoundSessions extends Listed<Chain> {
  /** Filters; null for all. */
  status: string | null
  trigger: string | null
  when: RangeName | null
  /** The own days of a range. */
  from: string | null
  to: string | null
  /** The time zone of days and nights; empty for UTC. */
  zone: string
  /** Of all that match; counted up to `MAX_COUNT`. */
  sums: Sums
}

/** The sessions of an escalation chain, oldest first, at least one. */
type Chain = readonly SessionRow[]

const STATUSES = anyOf('running', 'completed', 'failed', 'timed_out', 'escalated', 'stopped').map(
  ([value, label]) => [value, label.replace('_', ' ')] as const,
)
const TRIGGERS = anyOf('scheduled', 'manual', 'api', 'escalation', 'alert').map(
  ([value, label]) => [value, value === 'api' ? 'API' : label] as const,
)

const RANGES: readonly (readonly [RangeName | '', string])[] = [
  ['', 'Any time'],
  ['night', 'Last night (18:00 to 8:00)'],
  ['today', 'Today'],
  ['week', 'Last 7 days'],
  ['days', 'Own days…'],
]

/** `9 sessions, $0.41, 1 failed`. More than can be counted have no sums. */
export function sumText({ sessions, cost_usd, failed }: Sums): string {
  const count = countUpTo(sessions, 'session')
  if (sessions > MAX_COUNT) return count
  const parts = [count, cost_usd !== null && costText(cost_usd), failed > 0 && `${failed} failed`]
  return parts.filter((part) => part !== false).join(', ')
}

/** `/sessions`, newest first. */
export function sessionsView(found: FoundSessions): View {
  const { rows, older, status, trigger, when, sums } = found
  const isFiltered = status !== null || trigger !== null || when !== null
  const content = html`<section id="sessions-results" aria-label="Sessions">
    ${countLine(sumText(sums))}
    ${listTable({
      bodyId: 'session-rows',
      caption: 'Sessions, newest first',
      kind: 'sessions',
      columns: COLUMNS,
      rows: rows.map(chainRow),
      more: { next: older ?? null, label: 'Older sessions' },
      whenEmpty: emptyState(
        isFiltered
          ? 'No sessions match these filters.'
          : html`No sessions yet. <a href="/#trigger">Start one on the dashboard</a>.`,
      ),
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
  | 'ended_at'
  | 'duration_ms'
  | 'cost_usd'
  | 'prompt_text'
>

const COLUMNS = ['Session', 'Status', 'Trigger', 'Started', 'Took', { number: 'Cost' }]

/** Sessions one by one; `current` is marked. */
export function sessionTable(
  bodyId: string,
  caption: string,
  sessions: readonly SessionRow[],
  current?: number,
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'sessions',
    columns: COLUMNS,
    rows: sessions.map((session) => sessionRow(session, session.id === current)),
  })
}

/** A chain in a row: what began it, and the outcome of its last session, to which it leads. */
function chainRow(chain: Chain): Html {
  const [first] = chain
  const last = chain.at(-1)
  if (first === undefined || last === undefined) return html``
  if (chain.length === 1) return sessionRow(first, false)
  const costs = chain.flatMap(({ cost_usd }) => cost_usd ?? [])
  const members = html`<ol>
    ${chain.map(memberItem)}
  </ol>`
  return tableRow(
    { 'data-id': last.id },
    {
      type: html`${rowLink(`/sessions/${last.id}`, askedLine(first.prompt_text))}
      ${disclosed(`${chain.length} sessions, up to tier ${last.tier}`, members)}`,
      ...outcomeCells({ ...last, trigger: first.trigger, started_at: first.started_at }),
      'when took':
        last.ended_at === null
          ? '…'
          : durationText(last.ended_at.getTime() - first.started_at.getTime()),
      number: costCell(costs.length === 0 ? null : costs.reduce((sum, cost) => sum + cost)),
    },
  )
}

function memberItem({ id, prompt_text, tier, model, status, cost_usd }: SessionRow): Html {
  return html`<li>
    <a href="/sessions/${id}">${askedLine(prompt_text)}</a>
    <span class="detail">
      Session ${id}, tier ${tier},
      ${modelText(model)}${cost_usd !== null && `, ${costText(cost_usd)}`} ${statusBadge(status)}
    </span>
  </li>`
}

function outcomeCells({ status, trigger, started_at }: SessionRow) {
  return {
    verify: statusBadge(status),
    trigger: trigger === 'api' ? 'API' : trigger,
    when: timeTag(started_at),
  }
}

function costCell(cost: number | null): Html | string {
  return cost === null ? html`<span class="muted">–</span>` : costText(cost)
}

function sessionRow(session: SessionRow, isCurrent: boolean): Html {
  const { id, tier, model, duration_ms, cost_usd } = session
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
      ...outcomeCells(session),
      'when took': duration_ms === null ? '…' : durationText(duration_ms),
      number: costCell(cost_usd),
    },
  )
}

function sessionFilter({ status, trigger, when, from, to, zone }: FoundSessions): Html {
  const typed = { status, trigger, when, from, to, zone }
  const form = {
    id: 'filter',
    typed: Object.fromEntries(Object.entries(typed).map(([name, value]) => [name, value ?? ''])),
  }
  return filterForm(
    'Sessions',
    { path: '/sessions', results: 'sessions-results', trigger: 'change' },
    html`${select(form, 'when', 'Time', RANGES)}
      <div class="own-days">
        ${field(form, 'from', 'First day', { type: 'date' })}
        ${field(form, 'to', 'Last day', { type: 'date' })}
      </div>
      ${zoneField(zone)} ${select(form, 'status', 'Status', STATUSES, 'half')}
      ${select(form, 'trigger', 'Trigger', TRIGGERS, 'half')} ${submit('Filter', {})}`,
  )
}
