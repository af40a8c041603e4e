import type { EventSummary } from '../../db/hooks/events.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import { sizeTag, timeTag, listTable } from '../parts.ts'
import { VERIFICATIONS, verification, verifyBadge } from './layout.ts'

/** A table of events. */
export function eventTable(bodyId: string, caption: string, rows: readonly Html[]): Html {
  const columns = [
    'Provider',
    'Event type',
    'Received',
    'Verify status',
    { number: 'Payload size' },
  ]
  return listTable({ bodyId, caption, columns, rows })
}

/** One event as a row; its type leads to the event's page. */
export function eventRow(event: EventSummary): Html {
  const badge = verifyBadge(verification(event))
  return row(event, timeTag(event.received_at), badge, sizeTag(event.payload_size))
}

/**
 * The row that the browser's script fills for an event of the live stream. It holds the badges of
 * all states, of which the script keeps one, so that no label is written twice.
 */
export function eventRowTemplate(): Html {
  const badges = VERIFICATIONS.map(verifyBadge)
  const empty = { id: 0, provider: '', event_type: '' }
  return html`<template id="event-row"
    >${row(empty, html`<time></time>`, badges, html`<span></span>`)}</template
  >`
}

function row(
  { id, provider, event_type }: Pick<EventSummary, 'id' | 'provider' | 'event_type'>,
  time: Html,
  badges: Printable,
  size: Html,
): Html {
  return html`<tr role="row" data-id="${id}">
    <td role="cell" class="provider" data-field="provider">${provider}</td>
    <td role="cell" class="type">
      <a class="row-link" href="/log/${id}" data-field="event_type">${event_type ?? 'no type'}</a>
    </td>
    <td role="cell" class="when" data-field="received_at">${time}</td>
    <td role="cell" class="verify">${badges}</td>
    <td role="cell" class="number" data-field="payload_size">${size}</td>
  </tr>`
}
