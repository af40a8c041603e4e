import { html, type Html } from '../../kernel/html.ts'
import type { EventDetail } from '../../services/hooks/event-detail.ts'
import { copyBox, fact, sizeTag, timeTag, pairsTable } from '../parts.ts'
import { hooksPage, trustBadge, verification, verifyBadge } from './layout.ts'
import { replaySection, type ReplayView } from './replays.ts'
import { logUrl } from './log.ts'

/** What `/log/{id}` shows. */
export interface EventView {
  readonly event: EventDetail
  /** How much of a long payload's end was not read. */
  readonly omittedBytes: number
  /** The payload indented, when it is JSON or a form; else null. */
  readonly pretty: string | null
  /** An earlier event with the same body, which may mean a replayed delivery. */
  readonly sameBody: number | null
  /** What the unsigned type header says, where the event keeps another type; else null. */
  readonly contradictedType: string | null
  /** A command that sends the bytes again to this receiver, without a secret; null for a queue's event. */
  readonly curl: string | null
  readonly replay: ReplayView
}

/** A page of 25 MB helps nobody: longer payloads are shown up to here and downloaded whole. */
const SHOWN_CHARACTERS = 200_000

/** `/log/{id}`: everything that is stored of one event. */
export function eventPage(view: EventView): Html {
  const { event } = view
  return hooksPage({
    title: `Event ${event.id}`,
    section: 'log',
    body: html`<p class="crumb"><a href="/log">Log</a> / ${event.id}</p>
      <h1 class="event-title">
        <bdi>${event.event_type ?? 'Event without type'}</bdi> ${verifyBadge(verification(event))}
      </h1>
      ${view.sameBody !== null && sameBodyNote(view.sameBody)}
      ${view.contradictedType !== null && typeNote(view.contradictedType)} ${summary(view)}
      ${payload(view)} ${headers(event.headers)} ${replaySection(view.replay)}
      ${view.curl !== null && curlCommand(view.curl)}`,
  })
}

function curlCommand(command: string): Html {
  return html`<section aria-labelledby="curl-title">
    <h2 id="curl-title">Copy as curl</h2>
    <p class="muted">
      Sends the same bytes to this receiver again. Secrets are redacted: put yours in their place.
    </p>
    ${copyBox('curl-command', 'curl command', command)}
  </section>`
}

function sameBodyNote(earlier: number): Html {
  return html`<p class="note">
    The body is the same, byte for byte, as that of <a href="/log/${earlier}">event ${earlier}</a>:
    the sender repeats itself under a new delivery id, or somebody replays an old delivery.
  </p>`
}

function typeNote(type: string): Html {
  return html`<p class="note">
    The type header says <bdi>${type}</bdi>. The signature does not cover it: the event keeps the
    type of the first event with this body.
  </p>`
}

function summary({ event }: EventView): Html {
  return html`<section aria-labelledby="summary-title">
    <h2 id="summary-title">Summary</h2>
    <dl class="facts">
      ${fact('Id', event.id)}
      ${fact('Provider', html`<a href="${logUrl({ provider: event.provider })}">${event.provider}</a>`)}
      ${fact('Event type', event.event_type)} ${fact('Received', timeTag(event.received_at))}
      ${fact('Trust mode', trustBadge(event.trust_mode))}
      ${fact('Verified', event.verified ? 'yes' : 'no')}
      ${fact('Verification', event.verify_detail)} ${fact('Delivery id', event.external_id)}
      ${fact('Attempts', attempts(event.attempts))} ${fact('Content type', event.content_type)}
      ${fact('Source address', event.source_ip)}
      ${fact('Payload size', sizeTag(event.payload_size))}
    </dl>
  </section>`
}

function attempts(count: number): string {
  return count === 1 ? '1' : `${count} (delivered again with the same id, stored once)`
}

function payload({ event, omittedBytes, pretty }: EventView): Html {
  const bytes = omittedBytes === 0 ? null : event.payload_size
  const base64 = event.payload_encoding === 'base64'
  return html`<section aria-labelledby="payload-title">
    <div class="title-line">
      <h2 id="payload-title">Payload</h2>
      <a href="/log/${event.id}/payload" download>Download raw bytes</a>
    </div>
    ${base64 && html`<p class="note">The bytes are no UTF-8 text; they are shown as base64.</p>`}
    ${event.payload === '' ? html`<p class="muted">The body is empty.</p>` : block(pretty ?? event.payload, bytes)}
    ${
      pretty !== null &&
      html`<details id="raw-payload">
        <summary>Raw text as received</summary>
        ${block(event.payload)}
      </details>`
    }
  </section>`
}

/** A text as far as it is shown; it is the beginning of `bytes`, or with null all there is. */
function block(text: string, bytes: number | null = null): Html {
  const cut = text.length > SHOWN_CHARACTERS
  const all = bytes === null ? `of ${text.length} characters` : `characters of ${bytes} bytes`
  return html`<pre class="payload" tabindex="0" aria-label="Payload"><code>${
      cut ? text.slice(0, SHOWN_CHARACTERS) : text
    }</code></pre>
    ${cut && html`<p class="note">Only the first ${SHOWN_CHARACTERS} ${all} are shown.</p>`}`
}

function headers(all: Readonly<Record<string, string>>): Html {
  const entries = Object.entries(all)
  return html`<section aria-labelledby="headers-title">
    <h2 id="headers-title">Headers</h2>
    ${
      entries.length === 0
        ? html`<p class="muted">No headers are stored.</p>`
        : pairsTable('Request headers; secret values are redacted', 'Header', entries)
    }
  </section>`
}
