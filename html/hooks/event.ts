import { html, type Html } from '../../kernel/html.ts'
import type { EventDetail } from '../../services/hooks/event-detail.ts'
import {
  copyBox,
  fact,
  sizeTag,
  timeTag,
  pairsTable,
  listTable,
  attributes,
  saved,
} from '../parts.ts'
import { hooksPage, trustBadge, verification, verifyBadge } from './layout.ts'
import { logUrl } from './log.ts'
import type { Replay } from '../../db/hooks/replays.ts'
import { postForm, submit } from '../form.ts'

/** What `/log/{id}` shows. */
export interface EventView {
  readonly event: EventDetail
  /** Bytes at the end of a long payload that were not read. */
  readonly omittedBytes: number
  /** The payload indented, when it is JSON or a form; else null. */
  readonly pretty: string | null
  /** An earlier event with the same body, which may mean a replayed delivery. */
  readonly sameBody: number | null
  /** What the unsigned type header says, where the event keeps another type; else null. */
  readonly contradictedType: string | null
  /**
   * A command that sends the bytes again to this receiver, without a secret; null for a queue's
   * event.
   */
  readonly curl: string | null
  readonly replay: ReplayView
}

/** Longer payloads are cut here; the whole payload can be downloaded. */
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
    the provider sent it again under a new delivery id, or somebody replayed an old delivery.
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

/** The beginning of a text. It is itself the beginning of `bytes`, or with null the whole. */
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

/** The part of an event's page that replays it. */
export interface ReplayView {
  readonly eventId: number
  /** Where it is sent when no target is given; null when the settings name none. */
  readonly defaultTarget: string | null
  /** The newest replays, newest first. */
  readonly replays: readonly Replay[]
  /** True right after a replay: the page says how the newest one ended. */
  readonly done: boolean
  /** Why the last form was refused, with what was typed. */
  readonly refused: { readonly typed: string; readonly message: string } | null
}

/** Part of an event's page: the form that replays the event, and the results of its replays. */
export function replaySection(view: ReplayView): Html {
  const { defaultTarget, refused } = view
  return html`<section aria-labelledby="replay-title">
    <h2 id="replay-title">Replay</h2>
    <p class="muted">
      Sends the stored bytes to a target, signed anew for a signed provider. Private addresses are
      refused unless they are the default target of the <a href="/settings">settings</a> or listed
      in <code>HOOKS_REPLAY_TARGETS</code>.
    </p>
    ${replayForm(view)}
    ${
      defaultTarget !== null &&
      html`<p id="target-hint" class="hint">Empty = the default target, ${defaultTarget}</p>`
    }
    ${refused !== null && html`<p id="target-refused" class="refused" role="alert">${refused.message}</p>`}
    ${replaysList(view)}
  </section>`
}

function replayForm({ eventId, defaultTarget, refused }: ReplayView): Html {
  const again = { 'aria-invalid': 'true', 'aria-errormessage': 'target-refused', autofocus: true }
  const target = {
    ...{ id: 'target_url', name: 'target_url', type: 'url', value: refused?.typed },
    placeholder: defaultTarget ?? 'https://example.com/hook',
    autocomplete: 'off',
    required: defaultTarget === null,
    ...(defaultTarget !== null && { 'aria-describedby': 'target-hint' }),
    ...(refused !== null && again),
  }
  return postForm(
    {
      ...{ id: 'replay', class: 'filter', action: `/log/${eventId}/replay` },
      ...{ target: '#attempts', 'hx-sync': 'this:drop' },
    },
    html`<label for="target_url">Target (URL) <input${attributes(target)} /></label>
      ${submit('Replay', { class: 'primary', id: 'replay-button' })}`,
  )
}

/** The list alone: the answer to `POST /log/{id}/replay`. */
export function replaysList({ replays, done }: Pick<ReplayView, 'replays' | 'done'>): Html {
  const [newest] = replays
  return html`<div id="attempts">
    ${done && newest !== undefined && outcomeLine(newest)}
    ${
      replays.length === 0
        ? html`<p class="muted">Not replayed yet.</p>`
        : listTable({
            bodyId: 'attempt-rows',
            caption: 'Attempts to send this event on, newest first',
            columns: ['Target', 'Result', 'Answer', 'By', 'Time'],
            kind: 'attempts',
            rows: replays.map(replayRow),
          })
    }
  </div>`
}

function replayRow(replay: Replay): Html {
  const { outcome, status, ms, kind, target, at, detail } = replay
  return html`<tr role="row" data-attempt="${replay.id}" data-outcome="${outcome}">
    <td role="cell" class="type">
      <bdi>${target}</bdi> ${detail !== null && html`<span class="detail">${detail}</span>`}
    </td>
    <td role="cell" class="verify">
      <span class="badge ${outcome === 'delivered' ? 'verified' : 'bad'}">${outcome}</span>
    </td>
    <td role="cell" class="when">${status === null ? 'none' : `${status} in ${ms} ms`}</td>
    <td role="cell" class="when">${kind}</td>
    <td role="cell" class="when">${timeTag(at)}</td>
  </tr>`
}

function outcomeLine({ outcome, status, ms, detail }: Replay): Html {
  if (outcome === 'delivered') {
    return saved(`Delivered: ${status} in ${ms} ms.`)
  }
  const reasons = [status !== null && `the target answered ${status}`, detail].filter(Boolean)
  return html`<p class="refused" role="status">Not delivered: ${reasons.join('; ')}.</p>`
}
