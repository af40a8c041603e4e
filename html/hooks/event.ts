import { html, type Html } from '../../kernel/html.ts'
import type { EventDetail } from '../../services/hooks/event-detail.ts'
import { copyBox, facts, listTable, longText, namedRows } from '../parts.ts'
import { saved, section, sizeTag, timeTag } from '../parts.ts'
import { trustBadge, verification, verifyBadge } from './layout.ts'
import { logUrl } from './log-filter.ts'
import type { Replay } from '../../db/hooks/replays.ts'
import type { FormState, Page } from '../../kernel/http/view.ts'
import { plainField, postForm, refusal, submit } from '../form.ts'

/** What `/log/{id}` shows. */
export interface EventView {
  event: EventDetail
  /** Bytes at the end of a long payload that were not read. */
  omittedBytes: number
  /** The payload indented, when it is JSON or a form; else null. */
  pretty: string | null
  /** An earlier event with the same body, which may mean a replayed delivery. */
  sameBody: number | null
  /** What the unsigned type header says, where the event keeps another type; else null. */
  contradictedType: string | null
  /**
   * A command that sends the bytes again to this receiver, without a secret; null for a queue's
   * event.
   */
  curl: string | null
  /** Where it is sent when no target is given; null when the settings name none. */
  defaultTarget: string | null
  /** The newest replays, newest first. */
  replays: readonly Replay[]
  /** True right after a replay: the page says how the newest one ended. */
  isReplayed?: boolean
  /** The form that was refused, with what was typed. */
  refused?: FormState
}

/** Longer payloads are cut here; the whole payload can be downloaded. */
const SHOWN_CHARACTERS = 200_000

/** `/log/{id}`: everything that is stored of one event. */
export function eventPage(view: EventView): Page {
  const { event, sameBody, contradictedType, curl } = view
  return {
    title: `Event ${event.id}`,
    section: 'log',
    body: html`<p class="crumb"><a href="/log">Log</a> / ${event.id}</p>
      <h1 class="event-title">
        <bdi>${event.event_type ?? 'Event without type'}</bdi> ${verifyBadge(verification(event))}
      </h1>
      ${sameBody !== null && sameBodyNote(sameBody)}
      ${contradictedType !== null && typeNote(contradictedType)} ${summary(view)} ${payload(view)}
      ${headers(event.headers)} ${replaySection(view)} ${curl !== null && curlCommand(curl)}`,
  }
}

function curlCommand(command: string): Html {
  const content = html`<p class="muted">
      Sends the same bytes to this receiver again. Secrets are redacted: put yours in their place.
    </p>
    ${copyBox('curl-command', 'curl command', command)}`
  return section('curl-title', 'Copy as curl', content)
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
  const { provider } = event
  const content = facts({
    Id: event.id,
    Provider: html`<a href="${logUrl({ provider })}">${provider}</a>`,
    'Event type': event.event_type,
    Received: timeTag(event.received_at),
    'Trust mode': trustBadge(event.trust_mode),
    Verified: event.verified ? 'yes' : 'no',
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

const BASE64 = 'The bytes are no UTF-8 text; they are shown as base64.'
const EMPTY = html`<p class="muted">The body is empty.</p>`

function payload({ event, omittedBytes, pretty }: EventView): Html {
  const bytes = omittedBytes === 0 ? null : event.payload_size
  const isBase64 = event.payload_encoding === 'base64'
  const isEmpty = event.payload === ''
  return html`<section aria-labelledby="payload-title">
    <div class="title-line">
      <h2 id="payload-title">Payload</h2>
      <a href="/log/${event.id}/payload" download>Download raw bytes</a>
    </div>
    ${isBase64 && html`<p class="note">${BASE64}</p>`}
    ${isEmpty ? EMPTY : block(pretty ?? event.payload, bytes)}
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
  return html`${longText('Payload', text.slice(0, SHOWN_CHARACTERS))}
  ${cut && html`<p class="note">Only the first ${SHOWN_CHARACTERS} ${all} are shown.</p>`}`
}

function headers(all: Readonly<Record<string, string>>): Html {
  const entries = Object.entries(all)
  const caption = 'Request headers; secret values are redacted'
  const content =
    entries.length === 0
      ? html`<p class="muted">No headers are stored.</p>`
      : namedRows(caption, ['Header', 'Value'], entries)
  return section('headers-title', 'Headers', content)
}

/** Part of an event's page: the form that replays the event, and the results of its replays. */
function replaySection(view: EventView): Html {
  const { defaultTarget, refused } = view
  const content = html`<p class="muted">
      Sends the stored bytes to a target, signed anew for a signed provider. Private addresses are
      refused unless they are the default target of the <a href="/settings">settings</a> or listed
      in <code>HOOKS_REPLAY_TARGETS</code>.
    </p>
    ${replayForm(view)}
    ${
      defaultTarget !== null &&
      html`<p id="target-hint" class="hint">Empty = the default target, ${defaultTarget}</p>`
    }
    ${refusal({ id: 'target', fault: refused?.fault })} ${replaysList(view)}`
  return section('replay-title', 'Replay', content)
}

function replayForm({ event, defaultTarget, refused }: EventView): Html {
  const again = {
    'aria-invalid': 'true',
    'aria-errormessage': 'target-refused',
    autofocus: true,
  }
  const target = {
    id: 'target_url',
    name: 'target_url',
    type: 'url',
    value: refused?.typed?.['target_url'],
    placeholder: defaultTarget ?? 'https://example.com/hook',
    required: defaultTarget === null,
    'aria-describedby': defaultTarget === null ? undefined : 'target-hint',
    ...(refused !== undefined && again),
  }
  return postForm(
    {
      id: 'replay',
      class: 'filter',
      action: `/log/${event.id}/replay`,
      target: '#attempts',
      'hx-sync': 'this:drop',
    },
    html`${plainField('Target (URL)', target)}
    ${submit('Replay', { class: 'primary', id: 'replay-button' })}`,
  )
}

/** The list alone: the answer to `POST /log/{id}/replay`. */
export function replaysList(view: Pick<EventView, 'replays' | 'isReplayed'>): Html {
  const { replays, isReplayed = false } = view
  const [newest] = replays
  return html`<div id="attempts">
    ${isReplayed && newest !== undefined && outcomeLine(newest)}
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
  const { outcome, kind, target, at, detail } = replay
  return html`<tr role="row" data-attempt="${replay.id}" data-outcome="${outcome}">
    <td role="cell" class="type">
      <bdi>${target}</bdi> ${detail !== null && html`<span class="detail">${detail}</span>`}
    </td>
    <td role="cell" class="verify">
      <span class="badge ${outcome === 'delivered' ? 'verified' : 'bad'}">${outcome}</span>
    </td>
    <td role="cell" class="when">${answerText(replay)}</td>
    <td role="cell" class="when">${kind}</td>
    <td role="cell" class="when">${timeTag(at)}</td>
  </tr>`
}

/** Without a status, an event was given to a program. */
function answerText({ outcome, status, ms }: Replay): string {
  if (status !== null) return `${status} in ${ms} ms`
  return outcome === 'delivered' ? `exit 0 in ${ms} ms` : 'none'
}

function outcomeLine({ outcome, status, ms, detail }: Replay): Html {
  if (outcome === 'delivered') return saved(`Delivered: ${status} in ${ms} ms.`)
  const answer = status !== null && `the target answered ${status}`
  const reasons = [answer, detail].filter(Boolean).join('; ')
  return html`<p class="refused" role="status">Not delivered: ${reasons}.</p>`
}
