import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { EventRow, Preview } from '../../../../services/hooks/log/events/previews.ts'
import { listTable, rowLink, sizeTag, sizeText, tableRow, timeTag } from '../../../parts.ts'
import { verifyBadge } from '../../layout.ts'

const COLUMNS = [
  'Id',
  'Event type',
  'Payload',
  'Provider',
  'Received',
  'Verify status',
  { number: 'Payload size' },
]

/** A table of events; `open` is the id of the one that stands beside it. */
export function eventTable(
  bodyId: string,
  caption: string,
  events: readonly EventRow[],
  open = 0,
): Html {
  const rows = events.map((event) => eventRow(event, event.id === open))
  return listTable({ bodyId, caption, columns: COLUMNS, kind: 'log dense', rows })
}

/** One event as a row, which leads to the event's page. */
function eventRow(event: EventRow, isOpen: boolean): Html {
  const { id, event_type, provider, received_at, payload_size } = event
  const type = html`<bdi>${event_type ?? 'no type'}</bdi>`
  const cells = {
    id,
    type: rowLink(`/log/${id}`, type, { 'aria-current': isOpen ? 'true' : undefined }),
    preview: previewText(event),
    provider,
    when: timeTag(received_at),
    verify: verifyBadge(event),
    number: sizeTag(payload_size),
  }
  return tableRow({ 'data-id': id }, cells)
}

function previewText({ preview, payload_size }: EventRow): Printable {
  if (preview === null) return `binary, ${sizeText(payload_size)}`
  if (payload_size === 0 && preview.parts.length === 0) return 'empty'
  const [first = '', ...rest] = preview.parts
  return html`${partOf(first, preview)}${rest.map((part) => html` · ${partOf(part, preview)}`)}`
}

/** A part by itself, so that the direction of its letters turns no other part around. */
function partOf(part: string, { match = '' }: Preview): Html {
  const at = match === '' ? -1 : part.indexOf(match)
  if (at === -1) return html`<bdi>${part}</bdi>`
  const end = at + match.length
  return html`<bdi>${part.slice(0, at)}<mark>${match}</mark>${part.slice(end)}</bdi>`
}
