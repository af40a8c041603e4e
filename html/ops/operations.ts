import type { Cooldown } from '../../db/ops/operations.ts'
import { html, type Html } from '../../kernel/html.ts'
import { emptyState, listTable, timeTag } from '../parts.ts'
import { opsPage } from './layout.ts'

/** `/cooldowns`: operations of the last 24 hours. */
export function cooldownsPage(cooldowns: readonly Cooldown[]): Html {
  return opsPage({
    title: 'Cooldowns',
    section: 'cooldowns',
    body: html`<h1>Cooldowns</h1>
      <p class="muted">
        Operations of the last 24 hours. One that is run too often is refused for a while.
      </p>
      ${cooldownsFragment(cooldowns)}`,
  })
}

export function cooldownsFragment(cooldowns: readonly Cooldown[]): Html {
  if (cooldowns.length === 0) return emptyState('No operations in the last 24 hours.')
  return listTable({
    bodyId: 'cooldown-rows',
    caption: 'Operations of the last 24 hours',
    columns: ['Service', 'Action', { number: 'Times' }, 'Last'],
    rows: cooldowns.map(cooldownRow),
  })
}

function cooldownRow({ service, action_type, count, last_action }: Cooldown): Html {
  return html`<tr role="row">
    <td role="cell" class="type">${service}</td>
    <td role="cell">${action_type}</td>
    <td role="cell" class="number">
      ${count} <span class="narrow-only">${count === 1 ? 'time' : 'times'}</span>
    </td>
    <td role="cell" class="when">${timeTag(last_action)}</td>
  </tr>`
}
