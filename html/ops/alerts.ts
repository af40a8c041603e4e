import type { Alert, AlertOutcome, AlertText } from '../../db/ops/alerts.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { FormState } from '../../kernel/http/view.ts'
import { postForm, refusal, submit } from '../form.ts'
import { cards, fact, longText, nextLink, timeTag } from '../parts.ts'
import { opsPage } from './layout.ts'

/** How much of a payload is shown: a page of whole ones could take all memory. */
export const MAX_CHARACTERS = 20_000

/** What `/alerts` shows. */
export interface AlertsView {
  readonly alerts: readonly Alert[]
  readonly older: string | undefined
  /** An alert that could not be investigated. */
  readonly refused?: { readonly id: number; readonly fault: FormState['fault'] }
}

export interface AlertCard {
  readonly alert: Alert
  /** Why it could not be investigated. */
  readonly fault?: FormState['fault']
}

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

/** `/alerts`, the latest delivery first. */
export function alertsPage({ alerts, older, refused }: AlertsView): Html {
  return opsPage({
    title: 'Alerts',
    section: 'alerts',
    body: html`<h1>Alerts</h1>
      ${cards(
        alerts.map((alert) => alertCard({ alert, ...(alert.id === refused?.id && refused) })),
        html`No alerts yet. Have your monitoring tool post to <code>/api/v1/webhook</code>, with the
          key in <code>OPS_CHAT_API_KEY</code> as its bearer token.`,
      )}
      ${nextLink(older, 'Older alerts')}`,
  })
}

/** `/alerts/{id}`: the alert and the texts of its deliveries, the latest first. */
export function alertPage(
  alert: Alert,
  texts: readonly AlertText[],
  older: string | undefined,
): Html {
  const title = `Alert ${alert.id}`
  return opsPage({
    title,
    section: 'alerts',
    body: html`<h1>${title}</h1>
      <div class="cards">${alertCard({ alert })} ${texts.map(textCard)}</div>
      ${nextLink(older, 'Older texts')}`,
  })
}

export function alertCard({ alert, fault }: AlertCard): Html {
  const { id, title, source, count, outcome, problem, session_id, payload, texts } = alert
  const action = `/alerts/${id}/investigate`
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title-${id}">
    ${refusal({ id: `alert-${id}`, fault })}
    <div class="title-line">
      <h2 id="alert-title-${id}"><bdi>${title}</bdi></h2>
      <span class="badge ${LOOK[outcome]}">${outcome}</span>
    </div>
    <dl class="facts">
      ${fact('Outcome', MEANING[outcome])} ${problem !== null && fact('Problem', problem)}
      ${source !== null && fact('Source', source)} ${deliveries(count, alert.last_seen)}
      ${fact('First', timeTag(alert.first_seen))}
      ${texts > 1 && fact('Texts', html`<a href="/alerts/${id}">${texts} different texts</a>`)}
      ${
        session_id !== null &&
        fact('Session', html`<a href="/sessions/${session_id}">session ${session_id}</a>`)
      }
    </dl>
    <details>
      <summary>Newest delivery</summary>
      ${payloadText(payload, 'Newest delivery')}
    </details>
    ${postForm(
      { action, target: `#alert-${id}` },
      submit(html`Investigate <span class="hidden">${title}</span>`, { id: `investigate-${id}` }),
    )}
  </article>`
}

function textCard({ title, payload, count, first_seen, last_seen }: AlertText): Html {
  return html`<article class="panel card">
    <h2><bdi>${title}</bdi></h2>
    <dl class="facts">${deliveries(count, last_seen)} ${fact('First', timeTag(first_seen))}</dl>
    ${payloadText(payload, `Text of ${last_seen.toISOString()}`)}
  </article>`
}

function deliveries(count: number, last: Date): Html {
  return fact('Received', html`${count === 1 ? 'once' : `${count} times`}, last ${timeTag(last)}`)
}

function payloadText(payload: string, label: string): Html {
  const isCut = payload.length >= MAX_CHARACTERS
  return html`${isCut && html`<p class="muted">Its first ${MAX_CHARACTERS} characters:</p>`}
  ${longText(label, payload.slice(0, MAX_CHARACTERS))}`
}
