import type { Alert, AlertOutcome, AlertText } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { fact } from '../parts.ts'
import { timeTag } from '../text.ts'
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

/** `/alerts/{id}`: the texts that an alert came with, the newest first. */
export function alertPage(
  alert: Alert,
  texts: readonly AlertText[],
  shown: number,
  older: string | undefined,
): Html {
  return opsPage({
    title: `Alert ${alert.id}`,
    section: 'alerts',
    body: html`<h1>Alert ${alert.id}</h1>
      <div class="cards">
        ${alertCard(alert, shown)}
        ${texts.map(
          ({ title, payload, count, first_seen, last_seen }) =>
            html`<article class="panel card">
              <h2><bdi>${title}</bdi></h2>
              <dl class="facts">
                ${cameFact(count, last_seen)} ${fact('First', timeTag(first_seen))}
              </dl>
              ${payloadText(payload, shown, `Text of ${last_seen.toISOString()}`)}
            </article>`,
        )}
      </div>
      ${nextLink(older, 'Older texts')}`,
  })
}

/** One alert: the answer to `POST /alerts/{id}/investigate`. */
export function alertCard(alert: Alert, shown: number, refused: string | null = null): Html {
  const { id, title, source, count, outcome, problem, session_id, payload, texts } = alert
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title-${id}">
    ${refusedNote(refused, `alert-refused-${id}`)}
    <div class="title-line">
      <h2 id="alert-title-${id}"><bdi>${title}</bdi></h2>
      <span class="badge ${LOOK[outcome]}">${outcome}</span>
    </div>
    <dl class="facts">
      ${fact('Outcome', MEANING[outcome])} ${problem !== null && fact('Problem', problem)}
      ${source !== null && fact('Source', source)} ${cameFact(count, alert.last_seen)}
      ${fact('First', timeTag(alert.first_seen))}
      ${texts > 1 && fact('Texts', html`<a href="/alerts/${id}">${texts} different texts</a>`)}
      ${
        session_id !== null &&
        fact('Session', html`<a href="/sessions/${session_id}">session ${session_id}</a>`)
      }
    </dl>
    <details>
      <summary>Newest delivery</summary>
      ${payloadText(payload, shown, 'Newest delivery')}
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

function cameFact(count: number, last: Date): Html {
  return fact('Came', html`${count === 1 ? 'once' : `${count} times`}, last ${timeTag(last)}`)
}

function payloadText(payload: string, shown: number, label: string): Html {
  return html`${payload.length >= shown && html`<p class="muted">Its first ${shown} characters:</p>`}
    <pre
      class="payload"
      tabindex="0"
      aria-label="${label}"
    ><code>${payload.slice(0, shown)}</code></pre>`
}
