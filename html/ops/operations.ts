import type { Cooldown } from '../../db/ops/operations.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import { emptyState, listTable, tableRow, timeTag } from '../parts.ts'
import { opsView } from './layout.ts'

/** `/cooldowns`: operations of the last 24 hours. */
export function cooldownsView(cooldowns: readonly Cooldown[]): View {
  const above = html`<p class="muted">
    Operations of the last 24 hours. One that is run too often is refused for a while.
  </p>`
  const table = listTable({
    bodyId: 'cooldown-rows',
    caption: 'Operations of the last 24 hours',
    columns: ['Service', 'Action', { number: 'Times' }, 'Last'],
    rows: cooldowns.map(cooldownRow),
    whenEmpty: emptyState('No operations in the last 24 hours.'),
  })
  return opsView('Cooldowns', table, { above })
}

function cooldownRow({ service, action_type, count, last_action }: Cooldown): Html {
  const unit = count === 1 ? 'time' : 'times'
  const number = html`${count} <span class="narrow-only">${unit}</span>`
  const when = timeTag(last_action)
  return tableRow({}, { type: service, action: action_type, number, when })
}
