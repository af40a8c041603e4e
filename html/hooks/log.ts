import type { EventSummary } from '../../db/hooks/events.ts'
import type { Rejection } from '../../db/hooks/rejections.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { Page } from '../../kernel/http/view.ts'
import { emptyList, listTable, moreLink, tableRow, timeTag } from '../parts.ts'
import { eventRow, eventTable } from './event-row.ts'
import { isFiltered, logFilter, logUrl, type LogFilter } from './log-filter.ts'

/** A page of a list with its filters. */
export interface ListView {
  filter: LogFilter
  providers: readonly string[]
  /** True for a page that begins at a cursor. */
  below: boolean
  /** Path and query of the next page, or null on the last one. */
  next: string | null
  /** Where a search ran out of time; `next` continues from there. */
  searchedTo?: Date | null
}

/** A page of `/log`. */
export interface LogView extends ListView {
  events: readonly EventSummary[]
}

/** A page of `/log?rejected=1`. */
export interface RejectionsView extends ListView {
  rejections: readonly Rejection[]
}

/**
 * `/log`: the events, newest first. The stream continues from `position`, read before the events.
 */
export function logPage(view: LogView, position: number): Page {
  return {
    title: 'Log',
    section: 'log',
    body: html`<div data-live="${position}">
      <h1>Log</h1>
      ${tabs(false)} ${logFilter(view)} ${logFragment(view)}
    </div>`,
  }
}

/**
 * The table of `/log` with its link to the next page: the answer to htmx. The filter form takes
 * all of it; the link takes the rows and the next link.
 */
export function logFragment(view: LogView): Html {
  const { filter, events } = view
  const table = eventTable('log-rows', 'Events, newest first', events.map(eventRow))
  const searches = filter.text !== '' || filter.json !== ''
  // New events are announced, not inserted: rows must not move under the reader.
  return html`<div
    id="log-results"
    class="results"
    data-log-provider="${filter.provider}"
    data-log-type="${filter.event_type}"
    ${searches && html`data-log-searches`}
  >
    <p id="log-news" class="news" role="status"><a href="${logUrl(filter)}" hidden></a></p>
    ${listOf(view, events.length > 0 && table, noEvents(filter))}
  </div>`
}

const REJECTED =
  'A refused delivery is kept without its payload, and its source only as a network. ' +
  'The oldest are dropped first.'

/** `/log?rejected=1`: deliveries that were refused. */
export function rejectionsPage(view: RejectionsView): Page {
  return {
    title: 'Rejected deliveries',
    section: 'log',
    body: html`<h1>Log</h1>
      ${tabs(true)}
      <p class="muted">${REJECTED}</p>
      ${logFilter(view)} ${rejectionsFragment(view)}`,
  }
}

/** The table of `/log?rejected=1`; used as `logFragment` is. */
export function rejectionsFragment(view: RejectionsView): Html {
  const { filter, rejections } = view
  const table = listTable({
    bodyId: 'log-rows',
    caption: 'Refused deliveries, newest first',
    columns: ['Provider', 'Reason', 'Time', 'Status', 'Source'],
    rows: rejections.map(rejectionRow),
  })
  return html`<div id="log-results" class="results">
    ${listOf(view, rejections.length > 0 && table, noRejections(filter))}
  </div>`
}

function noRejections({ provider }: LogFilter): Html {
  const from = provider === '' ? '' : ' from this provider'
  const note = 'A delivery with a wrong signature or token would be listed here.'
  return emptyList(`Nothing was refused${from}.`, html`<span class="muted">${note}</span>`)
}

function rejectionRow({ provider, reason, at, status, source }: Rejection): Html {
  const verify = html`<span class="badge bad">${status}</span>`
  return tableRow({}, { provider, type: reason, when: timeTag(at), verify, source })
}

function tabs(rejected: boolean): Html {
  return html`<nav class="tabs" aria-label="Log">
    <a href="/log" ${!rejected && html`aria-current="page"`}>Events</a>
    <a href="/log?rejected=1" ${rejected && html`aria-current="page"`}>Rejected</a>
  </nav>`
}

/**
 * The table with the link to the next page. Without rows it says why, also where the events of a
 * page were removed since its link was made.
 */
function listOf(view: ListView, table: Html | false, whenNone: Html): Html {
  const { filter, below, next, searchedTo = null } = view
  const goesOn = table !== false || searchedTo !== null
  const newest = html`<a href="${logUrl(filter)}">Show the newest</a>`
  const nothing = below ? emptyList('Nothing older is kept.', newest) : whenNone
  const way = moreLink('log-rows', {
    next,
    label: searchedTo === null ? 'Load older entries' : 'Search on',
    end: 'No older entries.',
    note: searchedTo !== null && html`Searched back to ${timeTag(searchedTo)}.`,
    appends: table !== false,
  })
  return html`${table} ${!goesOn && nothing} ${(goesOn || below) && way}`
}

function noEvents(filter: LogFilter): Html {
  if (isFiltered(filter)) {
    const way = html`<a href="/log">Show all events</a>`
    return emptyList('No event matches these filters.', way)
  }
  const way = html`The <a href="/">dashboard</a> shows how to send the first one.`
  return emptyList('No event was received yet.', way)
}
