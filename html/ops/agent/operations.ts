import type { ActionSummary } from '../../../db/ops/agent/operations.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { View } from '../../../kernel/http/view.ts'
import type {
  OperationLimits,
  OperationLimit,
} from '../../../services/ops/agent/operations/limits.ts'
import { emptyState, listTable, section, tableRow, timeTag } from '../../parts.ts'
import { opsView } from '../layout.ts'

const ABOVE = html`<p class="muted">
  What tier 3 may do to services. An operation that has run as often as its limit allows is refused
  until the time below. What waits for a person is under <a href="/approvals">approvals</a>.
</p>`
const NO_OPERATIONS = emptyState(
  html`No service of the inventory has operations, so nothing is ever done to one.`,
)

/** `/cooldowns`: the limits of operations, and how far they are used. */
export function operationsView({ limits, others }: OperationLimits): View {
  const table = listTable({
    bodyId: 'limit-rows',
    caption: 'Operations and their limits',
    kind: 'feed',
    columns: ['Operation', 'State', 'Action', 'Used', 'Last'],
    rows: limits.map(limitRow),
    whenEmpty: NO_OPERATIONS,
  })
  const below =
    others.length > 0 &&
    section('others-title', 'Other actions of the last 24 hours', otherTable(others))
  return opsView('Cooldowns', html`${table} ${below}`, { above: ABOVE })
}

function limitRow(limit: OperationLimit): Html {
  const { service, name, action_type, most, window, count, last_action } = limit
  const times = most === 1 ? 'once' : `${most} times`
  return tableRow(
    {},
    {
      type: html`<bdi>${name}</bdi> <span class="detail"><bdi>${service}</bdi></span>`,
      verify: html`${limitBadge(limit)}
      ${limit.approval && html`<span class="detail">after approval</span>`}`,
      action: action_type,
      used: html`${count} of ${most} <span class="detail">at most ${times} in ${window}</span>`,
      when: last_action === null ? 'never' : timeTag(last_action),
    },
  )
}

/** Whether an operation may run by its cooldown. */
export function limitBadge({ most, freeAt }: OperationLimit): Html {
  if (most === 0) return html`<span class="badge bad">never allowed</span>`
  if (freeAt === null) return html`<span class="badge verified">allowed</span>`
  return html`<span class="badge open">cooling down</span>
    <span class="detail">until ${timeTag(freeAt, 'exact')}</span>`
}

/** What was done by operations that the inventory no longer has. */
function otherTable(others: readonly ActionSummary[]): Html {
  return listTable({
    bodyId: 'cooldown-rows',
    caption: 'Other actions of the last 24 hours',
    kind: 'feed',
    columns: ['Service', 'Action', { number: 'Times' }, 'Last'],
    rows: others.map(({ service, action_type, count, last_action }) => {
      const unit = count === 1 ? 'time' : 'times'
      const number = html`${count} <span class="narrow-only">${unit}</span>`
      return tableRow(
        {},
        { type: service, action: action_type, number, when: timeTag(last_action) },
      )
    }),
  })
}
