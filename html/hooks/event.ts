import { html, type Html, type Printable } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import type { Neighbours } from '../../db/hooks/log/events.ts'
import type { EventDetail, EventRequest } from '../../services/hooks/log/events/detail.ts'
import {
  attributes,
  copyAction,
  copyBox,
  emptyState,
  factLine,
  facts,
  namedRows,
  section,
  sizeTag,
  timeTag,
  type Attributes,
} from '../parts.ts'
import { tabs } from '../ways.ts'
import { compareForm, comparison, type CompareView } from './log/events/compare.ts'
import { MAX_TWICE, payloadSection, type PayloadView } from './log/events/payload.ts'
import { trustBadge, verifyBadge } from './layout.ts'
import { logUrl } from './log-url.ts'
import { subscriptionNote, type SubscriptionView } from './log/events/subscription.ts'
import { answersComparison, type AnswersView } from './send/replays/answers.ts'
import {
  deliveriesSection,
  LISTED_REPLAYS,
  replayMenu,
  type ReplaysView,
} from './send/replays/replays.ts'

/** The parts of an event. */
export const EVENT_TABS = ['payload', 'request', 'deliveries', 'curl'] as const
type EventTab = (typeof EVENT_TABS)[number]

/** What `/log/{id}` shows. */
export interface EventView
  extends PayloadView, ReplaysView, CompareView, AnswersView, SubscriptionView {
  event: PayloadView['event']
  tab: EventTab
  /** The delivery as it was sent, but for its secrets. */
  request: EventRequest
  neighbours: Neighbours
  /** The first event with the same signed body: this one may be a replayed delivery. */
  sameBody: Pick<EventDetail, 'id' | 'event_type'> | null
  /** Whether the event is signed, but its type is not. */
  hasUnsignedType: boolean
  /**
   * A command that sends the bytes again to this receiver, without a secret; null for a queue's
   * event.
   */
  curl: string | null
}

/** `/log/{id}`: everything that is stored of one event. */
export function eventPage(view: EventView): Page {
  const { event } = view
  const title = html`<h1 class="event-title">${titleOf(view)}</h1>`
  return {
    title: `Event ${event.id}`,
    section: 'log',
    script: 'hooks.js',
    body: html`<p class="crumb"><a href="/log">Log</a> / ${event.id}</p>
      ${article(view, title)}`,
  }
}

/** The event without the page around it, to stand beside the list of the log. */
export function eventFragment(view: EventView): Html {
  const title = html`<h2 class="event-title">
    <a href="/log/${view.event.id}">${titleOf(view)}</a>
  </h2>`
  return article(view, title)
}

function titleOf({ event }: EventView): Html {
  const type = event.event_type ?? 'Event without type'
  return html`<bdi>${type}</bdi> ${verifyBadge(event)}`
}

function article(view: EventView, title: Html): Html {
  const { event, hasUnsignedType } = view
  return html`<article id="event" class="event" data-event="${event.id}">
    ${title}
    ${factLine([
      html`<bdi>${event.provider}</bdi>`,
      html`event ${event.id}`,
      timeTag(event.received_at),
      sizeTag(event.payload_size),
      hasUnsignedType && 'type not signed',
    ])}
    ${eventBody(view)}
  </article>`
}

/** All below the title and its facts: the answer to the tabs and to the forms that replay. */
export function eventBody(view: EventView): Html {
  const { event, sameBody } = view
  return html`<div id="event-body">
    <div class="title-line">${actions(view)} ${neighbourLinks(view)}</div>
    ${subscriptionNote(event.id, view)} ${sameBody !== null && sameBodyNote(event, sameBody)}
    ${comparison(view)} ${eventTabs(view)} ${eventParts(view)}
  </div>`
}

/** What people do with an event. */
function actions(view: EventView): Html {
  const { event, neighbours } = view
  const previous = neighbours.previous_of_provider
  const isCopied = event.payload_encoding === 'utf8' && event.payload.length <= MAX_TWICE
  const compare = {
    id: 'compare-previous',
    class: 'button',
    ...inPlace(`/log/${event.id}?compare=${previous}`),
  }
  return html`<div class="actions">
    ${replayMenu(view)}
    ${
      isCopied &&
      html`${copyAction('payload-text', 'payload')}
        <pre id="payload-text" class="hidden" aria-hidden="true">${event.payload}</pre>`
    }
    ${previous !== null && html`<a${attributes(compare)}>Compare with previous</a>`}
  </div>`
}

/** A link that htmx follows in place, on the page of the event as well as beside the log. */
function inPlace(href: string): Attributes & { href: string } {
  return {
    href,
    'hx-get': href,
    'hx-target': '#event-body',
    'hx-select': '#event-body',
    'hx-swap': 'outerHTML',
  }
}

function eventTabs(view: EventView): Html {
  const { event, tab, replays } = view
  const labels = {
    payload: 'Payload',
    request: 'Request',
    deliveries: `Deliveries (${replays.length}${replays.length < LISTED_REPLAYS ? '' : '+'})`,
    curl: 'curl',
  }
  const shown = EVENT_TABS.filter((name) => isThere(name, view))
  const ways = shown.map((name) => {
    const own = inPlace(`/log/${event.id}${name === 'payload' ? '' : `?tab=${name}`}`)
    return { id: `tab-${name}`, ...own, label: labels[name], isCurrent: name === tab }
  })
  return tabs('Parts of the event', ways)
}

/** All parts are in the page (hooks.md section 4); with script only the one of the tab is shown. */
function eventParts(view: EventView): Html {
  const parts: Readonly<Record<EventTab, Html>> = {
    payload: html`${payloadSection(view)} ${compareForm(view)}`,
    request: html`${requestSection(view.request)} ${summary(view)}`,
    deliveries: html`${answersComparison(view)} ${deliveriesSection(view)}`,
    curl: curlSection(view),
  }
  const shown = EVENT_TABS.filter((name) => isThere(name, view) || name === view.tab)
  return html`${shown.map((name) => {
    const own = { class: 'event-part', 'data-part': name, 'data-shown': name === view.tab }
    return html`<div${attributes(own)}>${parts[name]}</div>`
  })}`
}

/** An event of a broker came without a request, so there is no command that repeats one. */
function isThere(tab: EventTab, { curl }: EventView): boolean {
  return tab !== 'curl' || curl !== null
}

/** The events before and after this one. `rel` names those of the log to browsers and scripts. */
function neighbourLinks({ event, neighbours }: EventView): Html {
  const { previous, next, previous_of_provider, next_of_provider } = neighbours
  const link = (id: number | null, text: Printable, rel?: string): Html | false => {
    return id !== null && html`<a${attributes({ rel, href: `/log/${id}` })}>${text}</a>`
  }
  const isAlone = previous_of_provider === null && next_of_provider === null
  const sameProvider =
    !isAlone &&
    (previous_of_provider !== previous || next_of_provider !== next) &&
    html`<span class="muted"><bdi>${event.provider}</bdi>:</span>
      ${link(previous_of_provider, '← Previous')} ${link(next_of_provider, 'Next →')}`
  return html`<nav class="neighbours" aria-label="Other events">
    ${link(previous, '← Previous event', 'prev')} ${link(next, 'Next event →', 'next')}
    ${sameProvider}
  </nav>`
}

function curlSection({ curl }: EventView): Html {
  const content =
    curl === null
      ? emptyState('This event came from a message broker, not by a request.')
      : html`<p class="muted">
            Sends the same bytes to this receiver again. Secrets are redacted: put yours in their
            place.
          </p>
          ${copyBox('curl-command', 'curl command', curl)}`
  return section('curl-title', 'Copy as curl', content)
}

function sameBodyNote(
  { id, event_type }: EventView['event'],
  first: NonNullable<EventView['sameBody']>,
): Html {
  const came =
    first.event_type !== event_type &&
    html`, which came as <bdi>${first.event_type ?? 'an event without a type'}</bdi>`
  return html`<p class="note">
    The body is the same, byte for byte, as that of
    <a href="/log/${first.id}">event ${first.id}</a>${came}: the provider sent it again under a new
    delivery id, or somebody replayed an old delivery.
    <a href="/log/${id}?compare=${first.id}">Compare them</a>.
  </p>`
}

function summary({ event, hasUnsignedType }: EventView): Html {
  const { provider, event_type } = event
  const unsigned = html`${event_type} <span class="muted">(type not signed)</span>`
  const content = facts({
    Id: event.id,
    Provider: html`<a href="${logUrl({ provider })}">${provider}</a>`,
    'Event type': hasUnsignedType && event_type !== null ? unsigned : event_type,
    Received: timeTag(event.received_at, 'exact'),
    'Trust mode': trustBadge(event.trust_mode),
    // Of a token or a broker "no" would read like a failure: the line below says what was checked.
    Verified: event.trust_mode === 'signed' && (event.verified ? 'yes' : 'no'),
    Verification: event.verify_detail,
    'Delivery id': event.external_id,
    Attempts: attempts(event.attempts),
    'Content type': event.content_type,
    'Source address': event.source_ip,
    'Payload size': sizeTag(event.payload_size),
  })
  return section('summary-title', 'Summary', content)
}

function attempts(count: number): string {
  return count === 1 ? '1' : `${count} (delivered again with the same id, stored once)`
}

/** Parameters of a query that are shown one by one. */
const MAX_PARAMETERS = 100

/** The delivery in the order and case in which it was sent. */
function requestSection({ method, path, query, headers }: EventRequest): Html {
  const caption = 'Request headers; secret values are redacted'
  const parameters = [...new URLSearchParams(query ?? '')].slice(0, MAX_PARAMETERS)
  const content = html`${
    method !== null &&
    html`<p>
      <code>${method} <bdi>${path}${query !== null && `?${query}`}</bdi></code>
    </p>`
  }
  ${
    parameters.length > 0 &&
    namedRows('Query parameters; secret values are redacted', ['Parameter', 'Value'], parameters)
  }
  ${
    headers.length === 0
      ? html`<p class="muted">No headers are stored.</p>`
      : namedRows(caption, ['Header', 'Value'], headers)
  }`
  return section('request-title', method === null ? 'Headers' : 'Request', content)
}
