import type { Session } from '../../db/ops/sessions.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listTable } from '../table.ts'
import { timeTag } from '../text.ts'
import { costText, durationText, modelText, shortText, statusBadge } from './parts.ts'

/** Sessions as rows, such as a list or a chain; `current` is marked. */
export function sessionTable(
  bodyId: string,
  caption: string,
  sessions: readonly Session[],
  current?: number,
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'sessions',
    columns: ['Session', 'Status', 'Tier', 'Trigger', 'Started', 'Took', { number: 'Cost' }],
    rows: sessions.map((session) => row(session, session.id === current)),
  })
}

function row(session: Session, isCurrent: boolean): Html {
  const { id, status, tier, model, trigger, started_at, duration_ms, cost_usd } = session
  const asked = session.prompt_text ?? 'A look at everything'
  return html`<tr role="row" data-id="${id}">
    <td role="cell" class="type">
      <a href="/sessions/${id}" ${isCurrent && html`aria-current="page"`}>${id}</a>
      <span class="detail">${shortText(asked, 120)}</span>
    </td>
    <td role="cell" class="verify">${statusBadge(status)}</td>
    <td role="cell">
      <span class="narrow-only">tier</span> ${tier} <span class="muted">${modelText(model)}</span>
    </td>
    <td role="cell">${trigger}</td>
    <td role="cell" class="when">${timeTag(started_at)}</td>
    <td role="cell" class="when">${duration_ms === null ? '…' : durationText(duration_ms)}</td>
    <td role="cell" class="number">
      ${cost_usd === null ? html`<span class="muted">–</span>` : costText(cost_usd)}
    </td>
  </tr>`
}
