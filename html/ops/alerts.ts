import type { Alert, AlertOutcome } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { fact } from '../fact.ts'
import { timeTag } from '../time.ts'
import { opsPage } from './layout.ts'
import { nextLink, refusedNote } from './parts.ts'

const LOOK: Readonly<Record<AlertOutcome, string>> = {
  received: 'token',
  acknowledged: 'open',
  failed: 'bad',
  triggered: 'verified',
}
const MEANING: Readonly<Record<AlertOutcome, string>> = {
  received: 'being read',
  acknowledged: 'kept: a session was running',
  failed: 'kept: no brief could be written',
  triggered: 'started a session',
}

/** An alert that somebody wants a session for, and why there is none. */
export interface RefusedAlert {
  readonly id: number
  readonly message: string
}

/** `/alerts`: what the webhook was sent, the newest delivery first; of each so many characters are shown. */
export function alertsPage(
  alerts: readonly Alert[],
  shown: number,
  older: string | undefined,
  refused: RefusedAlert | null,
): Html {
  return opsPage({
    title: 'Alerts',
    section: 'alerts',
    body: html`<h1>Alerts</h1>
      ${
        alerts.length === 0
          ? html`<p class="panel empty">
              No alert has come. Have your monitoring tool post to <code>/api/v1/webhook</code>,
              with the key in <code>OPS_CHAT_API_KEY</code> as its bearer token.
            </p>`
          : html`<div class="cards">
              ${alerts.map((alert) =>
                alertCard(alert, shown, refused?.id === alert.id ? refused.message : null),
              )}
            </div>`
      }
      ${nextLink(older, 'Older alerts')}`,
  })
}

/** One alert: the answer to `POST /alerts/{id}/investigate`. */
export function alertCard(alert: Alert, shown: number, refused: string | null = null): Html {
  const { id, title, source, count, outcome, problem, session_id, payload } = alert
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title-${id}">
    ${refusedNote(refused, `alert-refused-${id}`)}
    <div class="title-line">
      <h2 id="alert-title-${id}"><bdi>${title}</bdi></h2>
      <span class="badge ${LOOK[outcome]}">${outcome}</span>
    </div>
    <dl class="facts">
      ${fact('Outcome', MEANING[outcome])} ${problem !== null && fact('Problem', problem)}
      ${source !== null && fact('Source', source)}
      ${fact('Came', html`${count === 1 ? 'once' : `${count} times`}, last ${timeTag(alert.last_seen)}`)}
      ${fact('First', timeTag(alert.first_seen))}
      ${
        session_id !== null &&
        fact('Session', html`<a href="/sessions/${session_id}">session ${session_id}</a>`)
      }
    </dl>
    <details>
      <summary>Newest delivery</summary>
      ${payload.length >= shown && html`<p class="muted">Its first ${shown} characters:</p>`}
      <pre
        class="payload"
        tabindex="0"
        aria-label="Newest delivery"
      ><code>${payload.slice(0, shown)}</code></pre>
    </details>
    <form
      method="post"
      action="/alerts/${id}/investigate"
      hx-post="/alerts/${id}/investigate"
      hx-target="#alert-${id}"
      hx-swap="outerHTML"
    >
      <button type="submit" id="investigate-${id}">
        Investigate <span class="hidden">${title}</span>
      </button>
    </form>
  </article>`
}
