import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { EventDetail } from '../../../../services/hooks/log/events/detail.ts'
import type { JsonNode } from '../../../../services/hooks/log/events/json-nodes.ts'
import { longText, section } from '../../../parts.ts'
import { jsonTree } from './json-tree.ts'

/** What the page of an event shows of its payload. */
export interface PayloadView {
  event: EventDetail
  /** Bytes at the end of a long payload that were not read. */
  omittedBytes: number
  /** The payload taken apart, when it is JSON of a common size. */
  tree: JsonNode | undefined
  /** The payload indented, when it is JSON or a form; else null. */
  pretty: string | null
  /** True where the reader asked for the text as it was sent. */
  isRaw: boolean
}

/** Longer payloads are cut here; the whole payload can be downloaded. */
const SHOWN_CHARACTERS = 200_000
/** A longer payload is not on the page twice: a link leads to its text as sent. */
const MAX_TWICE = 50_000

const BASE64 = 'The bytes are no UTF-8 text; they are shown as base64.'
const NO_TREE = 'There is too much of this JSON for a tree; it is shown as text.'

/** The payload for reading and, unless it is long, as it was sent. */
export function payloadSection(view: PayloadView): Html {
  const { event, tree, pretty, isRaw } = view
  const isParsed = !isRaw && (tree !== undefined || pretty !== null)
  const isLong = event.payload.length > MAX_TWICE
  const ways = html`${isParsed && isLong && html`<a href="/log/${event.id}?raw=1">As sent</a>`}
    ${isRaw && html`<a href="/log/${event.id}">For reading</a>`}
    <a href="/log/${event.id}/payload" download>Download raw bytes</a>`
  const content = html`${event.payload_encoding === 'base64' && html`<p class="note">${BASE64}</p>`}
  ${readable(view)}
  ${
    isParsed &&
    !isLong &&
    html`<details id="raw-payload">
      <summary>As sent</summary>
      ${block('Payload as sent', event.payload)}
    </details>`
  }`
  return section('payload-title', 'Payload', content, {}, ways)
}

const HINT = html`<p class="hint">
  A value leads to the events that have it.
  <span class="js-only">A name copies its path.</span>
</p>`

function readable({ event, omittedBytes, tree, pretty, isRaw }: PayloadView): Printable {
  const bytes = omittedBytes === 0 ? null : event.payload_size
  if (event.payload === '') return html`<p class="muted">The body is empty.</p>`
  if (isRaw) return block('Payload as sent', event.payload, bytes)
  if (tree !== undefined) return html`${HINT} ${jsonTree(tree, event.provider)}`
  const isJson = pretty !== null && /^\s*[[{]/.test(event.payload)
  return html`${isJson && html`<p class="note">${NO_TREE}</p>`}
  ${block('Payload', pretty ?? event.payload, bytes)}`
}

/** The beginning of a text. It is itself the beginning of `bytes`, or with null the whole. */
function block(label: string, text: string, bytes: number | null = null): Html {
  const cut = text.length > SHOWN_CHARACTERS
  const all = bytes === null ? `of ${text.length} characters` : `characters of ${bytes} bytes`
  return html`${longText(label, text.slice(0, SHOWN_CHARACTERS))}
  ${cut && html`<p class="note">Only the first ${SHOWN_CHARACTERS} ${all} are shown.</p>`}`
}
