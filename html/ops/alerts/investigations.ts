import { html, type Html } from '../../../kernel/html.ts'
import type {
  CheckInvestigation,
  Waits,
} from '../../../services/ops/alerts/investigations/waiting.ts'
import { countText, timeTag } from '../../parts.ts'
import { sessionLink } from '../layout.ts'

/** Checks that the line names. */
const MAX_NAMED = 5

/** Which failing checks wait for a session, and why; nothing while none does. */
export function waitsLine(waits: readonly Waits[]): Html | false {
  const [first] = waits
  if (first === undefined) return false
  const one = waits.length === 1
  const isSame = waits.every(({ reason }) => reason === first.reason)
  const more = waits.length - MAX_NAMED
  const named = waits.slice(0, MAX_NAMED).map(({ id, service, name, reason }) => {
    return html`<a href="/checks/${id}"><bdi>${service}: ${name}</bdi></a
      >${!isSame && ` (${reason})`} `
  })
  return html`<p class="muted" id="investigations">
    ${countText(waits.length, 'failing check')} ${one ? 'waits' : 'wait'} for a
    session${isSame && `: ${first.reason}`}. ${named} ${more > 0 && `and ${more} more`}
  </p>`
}

/** Whether the failure of a check starts a session, which was the last one, and why one waits. */
export function investigationText(investigation: CheckInvestigation): Html | false {
  const { tier, at, session_id, reason } = investigation
  if (tier === null && at === null) return false
  const rule =
    tier === null ? 'A failure starts no session' : `A failure starts a session at tier ${tier}`
  const last =
    at !== null &&
    html`; the last one${session_id !== null && html`, ${sessionLink(session_id)},`} began
    ${timeTag(at)}`
  return html`${rule}${last}.${reason !== undefined && html` <strong>It waits: ${reason}.</strong>`}`
}
