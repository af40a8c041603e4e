import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { EventDetail } from '../../../../services/hooks/log/events/detail.ts'
import type { JsonNode } from '../../../../services/hooks/log/events/json-nodes.ts'
import type { OutlineLine } from '../../../../services/hooks/log/events/outline.ts'
import { longText, section } from '../../../parts.ts'
import { jsonTree } from './json-tree.ts'
import { outline } from './outline.ts'

/** What the page of an event shows of its payload. */
export interface PayloadView {
  event: EventDetail
  /** Bytes at the end of a long payload that were not read. */
  omittedBytes: number
  /** The payload as text, decoded where it was sent otherwise; undefined where it can't be read. */
  text: string | undefined
  /** Why it can't be read, in a word. */
  unreadable: string | undefined
  /** Whether what was decoded goes on behind `text`. */
  isReadingCut: boolean
  /** The payload taken apart, when it is JSON of a common size. */
  tree: JsonNode | undefined
  /** The payload indented, when it is JSON; else null. */
  pretty: string | null
  /** The lines of the payload, when it is XML or YAML of a common size. */
  outline: readonly OutlineLine[] | undefined
  /** True where the reader asked for the text as it was sent. */
  isRaw: boolean
}

/** Longer payloads are cut here; the whole payload can be downloaded. */
const SHOWN_CHARACTERS = 200_000
/** A longer payload is not on the page twice: a link leads to its text, and no button copies it. */
export const MAX_TWICE = 50_000

const NO_TREE = 'There is too much of this JSON for a tree; it is shown as text.'

/** The payload for reading and, unless it is long, as it was sent. */
export function payloadSection(view: PayloadView): Html {
  const { event, tree, pretty, outline: lines, isRaw } = view
  const isParsed =
    !isRaw && (event.readable !== undefined || (tree ?? lines) !== undefined || pretty !== null)
  const isLong = event.payload.length > MAX_TWICE
  const ways = html`${isParsed && isLong && html`<a href="/log/${event.id}?raw=1">As sent</a>`}
    ${isRaw && html`<a href="/log/${event.id}">For reading</a>`}
    <a href="/log/${event.id}/payload" download>Download raw bytes</a>`
  const content = html`${readingNote(view)} ${readable(view)}
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

/** How the payload was read, or why its bytes are shown. */
function readingNote({ event, unreadable, isRaw }: PayloadView): Html | false {
  const isBase64 = event.payload_encoding === 'base64'
  if (isRaw) return isBase64 && html`<p class="note">The bytes are shown as base64.</p>`
  if (unreadable !== undefined) {
    const shown = isBase64 ? 'as base64' : 'as they came'
    return html`<p class="note">Not readable: ${unreadable}. The bytes are shown ${shown}.</p>`
  }
  return event.read_as !== undefined && html`<p class="hint">Read as: ${event.read_as}.</p>`
}

function readable(view: PayloadView): Printable {
  const { event, omittedBytes, tree, pretty, isRaw, text } = view
  const bytes = omittedBytes === 0 ? null : String(event.payload_size)
  if (event.payload === '') return html`<p class="muted">The body is empty.</p>`
  if (isRaw || text === undefined) {
    return block(isRaw ? 'Payload as sent' : 'Payload', event.payload, bytes)
  }
  if (tree !== undefined) return html`${HINT} ${jsonTree(tree, event.provider)}`
  if (view.outline !== undefined) return outline(view.outline)
  const isDecoded = event.readable !== undefined
  const size = isDecoded ? (view.isReadingCut ? 'more than 1048576' : null) : bytes
  return html`${pretty !== null && html`<p class="note">${NO_TREE}</p>`}
  ${block('Payload', pretty ?? text, size)}`
}

/** A text, cut. `bytes` is the size of the payload where the text has only its beginning. */
function block(label: string, text: string, bytes: string | null = null): Html {
  const cut = text.length > SHOWN_CHARACTERS
  const all = bytes === null ? `of ${text.length} characters` : `characters of ${bytes} bytes`
  return html`${longText(label, text.slice(0, SHOWN_CHARACTERS))}
  ${cut && html`<p class="note">Only the first ${SHOWN_CHARACTERS} ${all} are shown.</p>`}`
}
