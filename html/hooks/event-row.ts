import type { EventSummary } from '../../db/hooks/events.ts'
import { html, type Html, type Printable } from '../../kernel/html.ts'
import { sizeTag, timeTag, listTable } from '../parts.ts'
import { VERIFICATIONS, verification, verifyBadge } from './layout.ts'

/** A table of events. */
export function eventTable(bodyId: string, caption: string, rows: Printable): Html {
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
  return row({
    id: event.id,
    provider: event.provider,
    type: event.event_type ?? 'no type',
    time: timeTag(event.received_at),
    badges: verifyBadge(verification(event)),
    size: sizeTag(event.payload_size),
  })
}

/**
 * The row that the browser's script fills for an event of the live stream. It holds the badges of
 * all states, of which the script keeps one, so that no label is written twice.
 */
export function eventRowTemplate(): Html {
  return html`<template id="event-row"
    >${row({
      id: 0,
      provider: '',
      type: '',
      time: html`<time></time>`,
      badges: VERIFICATIONS.map(verifyBadge),
      size: html`<span></span>`,
    })}</template
  >`
}

interface Cells {
  readonly id: number
  readonly provider: string
  readonly type: string
  readonly time: Html
  readonly badges: Printable
  readonly size: Html
}

function row(cells: Cells): Html {
  return html`<tr role="row" data-id="${cells.id}">
    <td role="cell" class="provider" data-field="provider">${cells.provider}</td>
    <td role="cell" class="type">
      <a href="/log/${cells.id}" data-field="event_type">${cells.type}</a>
    </td>
    <td role="cell" class="when" data-field="received_at">${cells.time}</td>
    <td role="cell" class="verify">${cells.badges}</td>
    <td role="cell" class="number" data-field="payload_size">${cells.size}</td>
  </tr>`
}
