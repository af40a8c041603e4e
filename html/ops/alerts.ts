import type { Alert, AlertOutcome, AlertText } from '../../db/ops/alerts.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page, View } from '../../kernel/http/view.ts'
import { postForm, submit } from '../form.ts'
import {
  countLine,
  countUpTo,
  emptyState,
  facts,
  listTable,
  longText,
  nextLink,
  rowLink,
} from '../parts.ts'
import { tableRow, timeTag } from '../parts.ts'
import { opsView, sessionLink, shortText, type Listed } from './layout.ts'

/** How much of a payload is shown: a page of whole ones could take all memory. */
export const MAX_CHARACTERS = 20_000

/** The badge of each outcome, and what it means. */
const OUTCOMES: Readonly<Record<AlertOutcome, readonly [string, string]>> = {
  received: ['token', 'being read'],
  acknowledged: ['open', 'kept: nothing was started'],
  failed: ['bad', 'kept: no brief could be written'],
  triggered: ['verified', 'started a session'],
}

const KEY = html`<code>OPS_CHAT_API_KEY</code>`
const NO_ALERTS = html`No alerts yet. Have your monitoring tool post to
  <code>/api/v1/webhook</code>, with the key in ${KEY} as its bearer token.`

/** What `/alerts` shows. */
export interface FoundAlerts extends Listed<Alert> {
  /** How many there are; counted up to `MAX_COUNT`. */
  count: number
}

/** `/alerts`, the latest delivery first. */
export function alertsView({ rows, older, count }: FoundAlerts): View {
  const content = html`<section id="alerts-results" aria-label="Alerts">
    ${count > 0 && countLine(countUpTo(count, 'alert'))}
    ${listTable({
      bodyId: 'alert-rows',
      caption: 'Alerts, the latest delivery first',
      kind: 'feed',
      columns: ['Alert', 'Outcome', { number: 'Deliveries' }, 'Session', 'Last', 'Look into it'],
      rows: rows.map(alertRow),
      whenEmpty: emptyState(NO_ALERTS),
      // A list with all rows needs no line at its end.
      ...(rows.length < count && { more: { next: older ?? null, label: 'Older alerts' } }),
    })}
  </section>`
  return opsView('Alerts', content)
}

function alertRow(alert: Alert): Html {
  const { id, title, outcome, problem, source, count, texts, last_seen } = alert
  const session = alert.session_id
  const [look, meaning] = OUTCOMES[outcome]
  const what = [source, problem ?? meaning].filter(Boolean).join(': ')
  return tableRow(
    { 'data-id': id },
    {
      type: html`${rowLink(`/alerts/${id}`, html`<bdi>${shortText(title, 200)}</bdi>`)}
        <span class="detail"
          >${shortText(what, 200)}${texts > 1 && html`; ${texts} different texts`}</span
        >`,
      verify: html`<span class="badge ${look}">${outcome}</span>`,
      number: html`${count}
        <span class="narrow-only">${count === 1 ? 'delivery' : 'deliveries'}</span>`,
      session: session !== null && sessionLink(session),
      when: timeTag(last_seen),
      change: investigateForm(alert),
    },
  )
}

/** Leads to the session that it starts. */
function investigateForm({ id, title }: Pick<Alert, 'id' | 'title'>): Html {
  return postForm(
    { action: `/alerts/${id}/investigate` },
    submit(html`Investigate <span class="hidden">${shortText(title, 200)}</span>`, {
      id: `investigate-${id}`,
    }),
  )
}

/** `/alerts/{id}`: the alert and the texts of its deliveries, the latest first. */
export function alertPage(alert: Alert, { rows, older }: Listed<AlertText>): Page {
  const { id, texts } = alert
  return {
    title: `Alert ${id}`,
    section: 'alerts',
    body: html`<p class="crumb"><a href="/alerts">Alerts</a> / ${id}</p>
      ${alertPanel(alert)}
      ${
        texts > 1 &&
        html`<h2>${texts} different texts</h2>
          <div class="cards">${rows.map(textCard)}</div>`
      }
      ${nextLink(older, 'Older texts')}`,
  }
}

function alertPanel(alert: Alert): Html {
  const { id, title, outcome, session_id: session } = alert
  const [look, meaning] = OUTCOMES[outcome]
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title">
    <div class="title-line">
      <h1 id="alert-title"><bdi>${title}</bdi></h1>
      <span class="badge ${look}">${outcome}</span>
    </div>
    ${facts({
      Outcome: meaning,
      Problem: alert.problem ?? false,
      Source: alert.source ?? false,
      Received: received(alert),
      First: timeTag(alert.first_seen),
      Session: session !== null && sessionLink(session),
    })}
    ${payloadText(alert, 'Newest delivery')} ${investigateForm(alert)}
  </article>`
}

function textCard(text: AlertText): Html {
  const { title, first_seen, last_seen } = text
  return html`<article class="panel card">
    <h3><bdi>${title}</bdi></h3>
    ${facts({ Received: received(text), First: timeTag(first_seen) })}
    ${payloadText(text, `Text of ${last_seen.toISOString()}`)}
  </article>`
}

function received({ count, last_seen }: Pick<AlertText, 'count' | 'last_seen'>): Html {
  const often = count === 1 ? 'once' : `${count} times`
  return html`${often}, last ${timeTag(last_seen)}`
}

function payloadText({ payload, length }: Pick<AlertText, 'payload' | 'length'>, label: string) {
  const shown = payload.slice(0, MAX_CHARACTERS)
  const isCut = shown.length < payload.length || length > MAX_CHARACTERS
  const part = `${shown.length.toLocaleString('en')} of ${length.toLocaleString('en')} characters`
  return html`${isCut && html`<p class="muted">Its first ${part}:</p>`} ${longText(label, shown)}`
}
