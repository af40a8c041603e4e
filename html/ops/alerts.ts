import type { Alert, AlertOutcome, AlertText } from '../../db/ops/alerts.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState, Page, View } from '../../kernel/http/view.ts'
import { postForm, refusal, submit } from '../form.ts'
import { cards, facts, longText, nextLink, timeTag } from '../parts.ts'
import { opsView, sessionLink, type Listed } from './layout.ts'

/** How much of a payload is shown: a page of whole ones could take all memory. */
export const MAX_CHARACTERS = 20_000

/** The badge of each outcome, and what it means. */
const OUTCOMES: Readonly<Record<AlertOutcome, readonly [string, string]>> = {
  received: ['token', 'being read'],
  acknowledged: ['open', 'kept: a session was running'],
  failed: ['bad', 'kept: no brief could be written'],
  triggered: ['verified', 'started a session'],
}

const KEY = html`<code>OPS_CHAT_API_KEY</code>`
const NO_ALERTS = html`No alerts yet. Have your monitoring tool post to
  <code>/api/v1/webhook</code>, with the key in ${KEY} as its bearer token.`

/** `/alerts`, the latest delivery first. `refused` is one that could not be investigated. */
export function alertsView(
  { rows, older }: Listed<Alert>,
  refused?: { id: number; fault: FormState['fault'] },
): View {
  const list = rows.map((alert) => {
    return alertCard(alert, alert.id === refused?.id ? refused.fault : undefined)
  })
  return opsView('Alerts', html`${cards(list, NO_ALERTS)} ${nextLink(older, 'Older alerts')}`)
}

/** `/alerts/{id}`: the alert and the texts of its deliveries, the latest first. */
export function alertPage(alert: Alert, { rows, older }: Listed<AlertText>): Page {
  const title = `Alert ${alert.id}`
  return {
    title,
    section: 'alerts',
    body: html`<h1>${title}</h1>
      <div class="cards">${alertCard(alert)} ${rows.map(textCard)}</div>
      ${nextLink(older, 'Older texts')}`,
  }
}

/** An alert. `fault` says why it could not be investigated. */
export function alertCard(alert: Alert, fault?: FormState['fault']): Html {
  const { id, title, outcome, session_id: session, texts } = alert
  const [look, meaning] = OUTCOMES[outcome]
  const action = `/alerts/${id}/investigate`
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title-${id}">
    ${refusal({ id: `alert-${id}`, fault })}
    <div class="title-line">
      <h2 id="alert-title-${id}"><bdi>${title}</bdi></h2>
      <span class="badge ${look}">${outcome}</span>
    </div>
    ${facts({
      Outcome: meaning,
      Problem: alert.problem ?? false,
      Source: alert.source ?? false,
      Received: received(alert),
      First: timeTag(alert.first_seen),
      Texts: texts > 1 && html`<a href="/alerts/${id}">${texts} different texts</a>`,
      Session: session !== null && sessionLink(session),
    })}
    <details>
      <summary>Newest delivery</summary>
      ${payloadText(alert.payload, 'Newest delivery')}
    </details>
    ${postForm(
      { action, target: `#alert-${id}` },
      submit(html`Investigate <span class="hidden">${title}</span>`, { id: `investigate-${id}` }),
    )}
  </article>`
}

function textCard(text: AlertText): Html {
  const { title, payload, first_seen, last_seen } = text
  return html`<article class="panel card">
    <h2><bdi>${title}</bdi></h2>
    ${facts({ Received: received(text), First: timeTag(first_seen) })}
    ${payloadText(payload, `Text of ${last_seen.toISOString()}`)}
  </article>`
}

function received({ count, last_seen }: Pick<AlertText, 'count' | 'last_seen'>): Html {
  const often = count === 1 ? 'once' : `${count} times`
  return html`${often}, last ${timeTag(last_seen)}`
}

function payloadText(payload: string, label: string): Html {
  const isCut = payload.length >= MAX_CHARACTERS
  return html`${isCut && html`<p class="muted">Its first ${MAX_CHARACTERS} characters:</p>`}
  ${longText(label, payload.slice(0, MAX_CHARACTERS))}`
}
