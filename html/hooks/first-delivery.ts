import type { Rejection } from '../../db/hooks/receive/rejections.ts'
import type { TrustMode } from '../../db/hooks/receive/providers.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import type { EventRow } from '../../services/hooks/log/events/previews.ts'
import type { SenderInfo } from '../../services/hooks/receive/schemes/describe.ts'
import { postForm, submit } from '../form.ts'
import { attributes, breakable, copyBox, followed, timeTag } from '../parts.ts'
import { eventTable } from './log/events/row.ts'
import { logUrl } from './log-url.ts'

/** What has come of a provider so far. */
export interface FirstDelivery {
  name: string
  url: string
  trust_mode: TrustMode
  enabled: boolean
  /** When the newest event came; null before the first one. */
  last_event_at: Date | null
  /** The newest event; undefined where none is kept. */
  event: EventRow | undefined
  /** Whose headers it has, and how it names itself. */
  sender: SenderInfo | undefined
  userAgent: string | undefined
  /** The newest refused delivery. */
  rejection: Pick<Rejection, 'at' | 'status' | 'reason'> | undefined
}

/** The id of what follows the stream, on each page that waits for a delivery. */
const SOURCE = 'add-provider'

/** A page that waits for a delivery; `position` is the newest event: the stream goes on from there. */
export function waitingPage(title: string, body: Html, position: number): Page {
  return {
    title,
    section: 'providers',
    script: 'hooks.js',
    body: html`<h1>${breakable(title)}</h1>
      <div id="${SOURCE}" data-stream="/events" data-last="${position}">${body}</div>`,
  }
}

/** Creates an open provider with one click; its answer is the page that waits. */
export function createUrlForm(look?: 'primary'): Html {
  const own = { id: 'create-url', class: look }
  return postForm({ action: '/providers/new' }, submit('Create a URL', own))
}

/** `/providers/NAME/first`: where to send, and whether somebody has sent. */
export function firstPage(first: FirstDelivery, position: number): Page {
  const isOpen = first.trust_mode === 'open'
  const body = html`<p>
      Send to this URL. ${isOpen && 'Anybody who knows it can send: give it to the sender only.'}
    </p>
    <div class="url">${copyBox('made-url', 'URL', breakable(first.url))}</div>
    ${
      isOpen &&
      html`<p>Try it in a terminal:</p>
        ${copyBox('made-curl', 'curl command', curlLine(first.url))}`
    }
    ${firstDelivery(first)}`
  return waitingPage(first.name, body, position)
}

function curlLine(url: string): string {
  return `curl ${url} -H 'Content-Type: application/json' -d '{"hello": "world"}'`
}

/** The newest delivery; it asks again after each message of the stream. */
export function firstDelivery(first: FirstDelivery): Html {
  const { name, event, last_event_at: last, rejection, trust_mode } = first
  const path = pathOf(name, 'first')
  const own = {
    id: 'first-delivery',
    class: 'panel',
    ...followed(path, 'status', SOURCE, 'first-delivery'),
  }
  const isRefused = rejection !== undefined && (last === null || rejection.at > last)
  return html`<section${attributes(own)}>
    <h2>${last === null ? 'First delivery' : 'Newest delivery'}</h2>
    <div role="status">
      ${last === null ? waiting(first) : arrived(last)} ${isRefused && refused(name, rejection)}
    </div>
    ${event && eventTable('delivery-rows', 'The newest delivery', [event])}
    ${event && trust_mode === 'open' && whatIsIt(first)}
    <p class="actions">
      <a href="${path}">Look again</a>
      ${last !== null && html`<a href="${logUrl({ provider: name })}">Show all in the log</a>`}
      <a href="/providers?open=${encodeURIComponent(name)}">Show the provider</a>
    </p>
  </section>`
}

function waiting({ enabled }: FirstDelivery): Html {
  return html`<p>Waiting for the first delivery…</p>
    ${!enabled && html`<p class="note">The provider is disabled: deliveries are refused (403).</p>`}`
}

function arrived(at: Date): Html {
  return html`<p class="good">It has arrived, ${timeTag(at)}.</p>`
}

function refused(name: string, { at, status, reason }: NonNullable<FirstDelivery['rejection']>) {
  return html`<p class="refused">
    A delivery was refused with ${status}, ${timeTag(at)}: ${reason}.
    <a href="${logUrl({ provider: name, rejected: '1' })}">Show what was refused</a>
  </p>`
}

/** Whose headers the delivery has, and the way to check them from the next one on. */
function whatIsIt({ name, sender, userAgent }: FirstDelivery): Html {
  const path = pathOf(name, 'verify')
  if (sender === undefined) {
    return html`<h3>What is this?</h3>
      <p>
        Its headers are of no sender that Gatehouse
        knows${userAgent !== undefined && html`; it calls itself <code>${userAgent}</code>`}.
      </p>
      <p><a class="button" href="${path}">Verify it</a></p>`
  }
  return html`<h3>What is this?</h3>
    <p>
      It looks like <strong>${sender.title}</strong>: it has the headers of that sender. Nothing
      was checked yet.
    </p>
    <p><a class="button primary" href="${path}?scheme=${sender.name}">Verify it</a></p>`
}

function pathOf(name: string, page: 'first' | 'verify'): string {
  return `/providers/${encodeURIComponent(name)}/${page}`
}
