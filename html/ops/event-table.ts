import type { Event } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable } from '../table.ts'
import { timeTag } from '../text.ts'
import { levelBadge } from './parts.ts'

/** Events as rows, newest first. */
export function eventTable(bodyId: string, caption: string, events: readonly Event[]): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'feed',
    columns: ['Message', 'Level', 'Service', 'Session', 'Time'],
    rows: events.map(row),
  })
}

function row({ id, level, service, message, session_id, created_at }: Event): Html {
  return html`<tr role="row" data-id="${id}">
    <td role="cell" class="type">${message}</td>
    <td role="cell" class="verify">${levelBadge(level)}</td>
    <td role="cell">${service}</td>
    <td role="cell">
      ${session_id !== null && html`<a href="/sessions/${session_id}">session ${session_id}</a>`}
    </td>
    <td role="cell" class="when">${timeTag(created_at)}</td>
  </tr>`
}
