import type { Cooldown } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable } from '../table.ts'
import { timeTag } from '../text.ts'
import { opsPage } from './layout.ts'

/** `/cooldowns`: what was done in the last 24 hours. */
export function cooldownsPage(cooldowns: readonly Cooldown[]): Html {
  return opsPage({
    title: 'Cooldowns',
    section: 'cooldowns',
    body: html`<h1>Cooldowns</h1>
      <p class="muted">
        Operations of the last 24 hours: what is done too often is refused for a while.
      </p>
      ${
        cooldowns.length === 0
          ? html`<p class="panel empty">Nothing was done in the last 24 hours.</p>`
          : listTable({
              bodyId: 'cooldown-rows',
              caption: 'Operations of the last 24 hours',
              columns: ['Service', 'Action', { number: 'Times' }, 'Last'],
              rows: cooldowns.map(row),
            })
      }`,
  })
}

function row({ service, action_type, count, last_action }: Cooldown): Html {
  return html`<tr role="row">
    <td role="cell" class="type">${service}</td>
    <td role="cell">${action_type}</td>
    <td role="cell" class="number">
      ${count} <span class="narrow-only">${count === 1 ? 'time' : 'times'}</span>
    </td>
    <td role="cell" class="when">${timeTag(last_action)}</td>
  </tr>`
}
