import type { Alert, AlertOutcome, AlertState, AlertText } from '../../../db/ops/alerts/alerts.ts'
import { html, type Html } from '../../../kernel/html.ts'
import type { FormState, Page, View } from '../../../kernel/http/view.ts'
import type { Incident } from '../../../services/ops/alerts/incidents/incidents.ts'
import { anyOf, field, filterForm, postForm, select, submit } from '../../form.ts'
import {
  cardList,
  copyBox,
  countLine,
  countUpTo,
  disclosed,
  emptyState,
  facts,
  listTable,
  longText,
  nextLink,
  rowLink,
  section,
  tableRow,
  timeTag,
} from '../../parts.ts'
import { menu } from '../../ways.ts'
import { incidentSections, notesSection, spentFacts } from './incidents/incident.ts'
import { opsView, sessionLink, shortText, type Listed } from '../layout.ts'

/** How much of a payload is shown: a page of whole ones could take all memory. */
export const MAX_CHARACTERS = 20_000

/** The badge of each outcome, and what it means. */
const OUTCOMES: Readonly<Record<AlertOutcome, readonly [string, string]>> = {
  received: ['token', 'being read'],
  acknowledged: ['open', 'its last delivery started nothing'],
  failed: ['bad', 'no brief could be written'],
  triggered: ['verified', 'started a session'],
  waiting: ['token', 'waits for a session'],
  resolved: ['verified', 'over, so nothing starts'],
  silenced: ['open', 'a silence holds it back'],
}
const STATE_LOOK: Readonly<Record<AlertState, string>> = { firing: 'bad', resolved: 'verified' }
const STATES = anyOf('firing', 'resolved')

const KEY = html`<code>OPS_CHAT_API_KEY</code>`
const NO_ALERTS = html`No alerts yet. Have your monitoring tool post to
  <code>/api/v1/webhook</code>, with the key in ${KEY} as its bearer token.`

/** What `/alerts` shows. */
interface FoundAlerts extends Listed<Alert> {
  /** Filters; null for all. */
  state: string | null
  service: string | null
  /** How many there are; counted up to `MAX_COUNT`. */
  count: number
}

/** `/alerts`, the latest delivery first. */
export function alertsView(found: FoundAlerts): View {
  const { rows, older, count, state, service } = found
  const isFiltered = state !== null || service !== null
  const content = html`<section id="alerts-results" aria-label="Alerts">
    ${count > 0 && countLine(countUpTo(count, 'alert'))}
    ${listTable({
      bodyId: 'alert-rows',
      caption: 'Alerts, the latest delivery first',
      kind: 'feed',
      columns: ['Alert', 'State', { number: 'Deliveries' }, 'Session', 'Last', 'Look into it'],
      rows: rows.map(alertRow),
      whenEmpty: emptyState(isFiltered ? 'No alerts match these filters.' : NO_ALERTS),
      // A list with all rows needs no line at its end.
      ...(rows.length < count && { more: { next: older ?? null, label: 'Older alerts' } }),
    })}
  </section>`
  return opsView('Alerts', content, { above: alertFilter(found) })
}

function alertFilter({ state, service }: FoundAlerts): Html {
  const form = { id: 'filter', typed: { state: state ?? '', service: service ?? '' } }
  return html`<p class="actions"><a href="/silences">Silences</a></p>
    ${filterForm(
      'Alerts',
      { path: '/alerts', results: 'alerts-results' },
      html`${select(form, 'state', 'State', STATES, 'half')}
      ${field(form, 'service', 'Service', { width: 'half' })} ${submit('Filter', {})}`,
    )}`
}

function alertRow(alert: Alert): Html {
  const { id, title, outcome, problem, source, count, texts, last_seen } = alert
  const session = alert.session_id
  const [look, meaning] = OUTCOMES[outcome]
  const { service, state } = alert
  const from = [source, service].filter(Boolean).join(', ')
  const what = [from, problem ?? meaning].filter(Boolean).join(': ')
  return tableRow(
    { 'data-id': id },
    {
      type: html`${rowLink(`/alerts/${id}`, html`<bdi>${shortText(title, 200)}</bdi>`)}
        <span class="detail"
          >${shortText(what, 200)}${texts > 1 && html`; ${texts} different texts`}</span
        >`,
      verify: html`<span class="badge ${STATE_LOOK[state]}">${state}</span>
        ${outcome !== state && html`<span class="badge ${look}">${outcome}</span>`}`,
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

/** What `/alerts/{id}` shows. */
export interface ShownAlert {
  alert: Alert
  /** The texts of its deliveries, the latest first. */
  texts: Listed<AlertText>
  incident: Incident
  /** The address of this page. */
  address: string
  note: FormState
}

/** `/alerts/{id}`: the incident of its newest firing. */
export function alertPage({ alert, texts, incident, address, note }: ShownAlert): Page {
  const { id } = alert
  return {
    title: `Alert ${id}`,
    section: 'alerts',
    body: html`<p class="crumb"><a href="/alerts">Alerts</a> / ${id}</p>
      ${alertPanel(alert, incident, address)} ${notesSection(alert, incident.notes, note)}
      ${incidentSections(incident)}
      ${
        alert.texts > 1 &&
        section(
          'texts-title',
          `${alert.texts} different texts`,
          cardList(texts.rows.map(textCard)),
        )
      }
      ${nextLink(texts.older, 'Older texts')}`,
  }
}

function alertPanel(alert: Alert, incident: Incident, address: string): Html {
  const { id, title, outcome, state } = alert
  const [, meaning] = OUTCOMES[outcome]
  return html`<article class="panel card" id="alert-${id}" aria-labelledby="alert-title">
    <div class="title-line">
      <h1 id="alert-title"><bdi>${title}</bdi></h1>
      <span class="badge ${STATE_LOOK[state]}">${state}</span>
    </div>
    ${facts({
      State: stateLine(alert),
      ...spentFacts(incident),
      Outcome:
        outcome === 'silenced'
          ? html`${meaning}: <a href="/silences">see the silences</a>`
          : meaning,
      'Not before': alert.due_at !== null && timeTag(alert.due_at, 'exact'),
      Problem: alert.problem ?? false,
      Service: alert.service ?? false,
      Source: alert.source ?? false,
      Labels: labelsText(alert),
      Received: received(alert),
      First: timeTag(alert.first_seen),
    })}
    ${payloadText(alert, 'Newest delivery')}
    <div class="actions">
      ${investigateForm(alert)}
      ${menu('More', [
        { href: `/silences?alert=${id}`, label: 'Silence it' },
        { href: `/alerts/${id}/report.md`, label: 'Download as Markdown' },
      ])}
    </div>
    ${disclosed('Share…', copyBox('address', 'address', address))}
  </article>`
}

function stateLine({ state, firing_since, resolved_at, firings }: Alert): Html {
  const often = firings > 1 && html`, for the ${ordinal(firings)} time`
  if (resolved_at === null) return html`${state} since ${timeTag(firing_since)}${often}`
  return html`${state} ${timeTag(resolved_at)}, fired since ${timeTag(firing_since)}${often}`
}

function ordinal(count: number): string {
  const isTeen = count % 100 >= 11 && count % 100 <= 13
  const end = isTeen ? 'th' : (['th', 'st', 'nd', 'rd'][count % 10] ?? 'th')
  return `${count}${end}`
}

function labelsText({ labels }: Alert): Html | false {
  const pairs = Object.entries(labels)
  if (pairs.length === 0) return false
  return html`<bdi>${pairs.map(([name, value]) => `${name}=${value}`).join(', ')}</bdi>`
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
