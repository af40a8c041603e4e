import type { Rejection } from '../../db/hooks/rejections.ts'
import { html, type Html } from '../../kernel/html.ts'
import { hooksPage } from './layout.ts'
import { listTable } from '../table.ts'
import { timeTag } from '../text.ts'
import { eventRow, eventTable } from './event-row.ts'
import { filterForm, logUrl } from './log-filter.ts'
import type { LogFilter, LogView, RejectionsView } from './views.ts'

/** `/log`: the stored events, newest first; the stream goes on from `position`, the newest id before they were read. */
export function logPage(view: LogView, position: number): Html {
  return hooksPage({
    title: 'Log',
    section: 'log',
    body: html`<div data-live="${position}">
      <h1>Log</h1>
      ${tabs(false)} ${filterForm(view.filter, view.providers, false)} ${logFragment(view)}
    </div>`,
  })
}

/**
 * The table of `/log` with its link to the next page: what a request of htmx is answered with. The
 * filter form takes it whole; the link takes the rows and the next link out of it.
 */
export function logFragment(view: LogView): Html {
  const { filter, events, below, next, searchedTo } = view
  const searches = filter.text !== '' || filter.json !== ''
  // "New events" is said, not inserted: rows must not move under the reader.
  return html`<div
    id="log-results"
    class="results"
    data-log-provider="${filter.provider}"
    data-log-type="${filter.event_type}"
    ${searches && html`data-log-searches`}
  >
    <p id="log-news" class="news" role="status"><a href="${logUrl(filter)}" hidden></a></p>
    ${
      events.length === 0
        ? searchedTo === null && (below ? nothingOlder(logUrl(filter)) : noEvents(filter))
        : eventTable('log-rows', 'Events, newest first', events.map(eventRow))
    }
    ${
      (events.length > 0 || below || searchedTo !== null) &&
      more(next, searchedTo, events.length > 0)
    }
  </div>`
}

/** `/log?rejected=1`: deliveries that were refused. */
export function rejectionsPage(view: RejectionsView): Html {
  return hooksPage({
    title: 'Rejected deliveries',
    section: 'log',
    body: html`<h1>Log</h1>
      ${tabs(true)}
      <p class="muted">
        A refused delivery is kept without its payload, and its source only as a network. The oldest
        are dropped first.
      </p>
      ${filterForm(view.filter, view.providers, true)} ${rejectionsFragment(view)}`,
  })
}

/** The table of `/log?rejected=1`; used as `logFragment` is. */
export function rejectionsFragment({ filter, rejections, below, next }: RejectionsView): Html {
  if (rejections.length === 0 && below) {
    const newest = logUrl({ ...filter, rejected: true })
    return html`<div id="log-results" class="results">${nothingOlder(newest)} ${more(null)}</div>`
  }
  if (rejections.length === 0) {
    return html`<div id="log-results" class="results">
      <div class="panel empty">
        <p>
          <strong>Nothing was refused${filter.provider !== '' && ' from this provider'}.</strong>
        </p>
        <p class="muted">A delivery with a wrong signature or token would be listed here.</p>
      </div>
    </div>`
  }
  return html`<div id="log-results" class="results">
    ${listTable({
      bodyId: 'log-rows',
      caption: 'Refused deliveries, newest first',
      columns: ['Provider', 'Reason', 'Time', 'Status', 'Source'],
      rows: rejections.map(rejectionRow),
    })}
    ${more(next)}
  </div>`
}

function rejectionRow(rejection: Rejection): Html {
  return html`<tr role="row">
    <td role="cell" class="provider">${rejection.provider}</td>
    <td role="cell" class="type">${rejection.reason}</td>
    <td role="cell" class="when">${timeTag(rejection.at)}</td>
    <td role="cell" class="verify"><span class="badge bad">${rejection.status}</span></td>
    <td role="cell" class="source">${rejection.source}</td>
  </tr>`
}

function tabs(rejected: boolean): Html {
  return html`<nav class="tabs" aria-label="Log">
    <a href="/log" ${!rejected && html`aria-current="page"`}>Events</a>
    <a href="/log?rejected=1" ${rejected && html`aria-current="page"`}>Rejected</a>
  </nav>`
}

/**
 * Both states bear the same id: htmx gives the focus back to it, also when the last page came. Under
 * an empty list there is nothing to append to, so the link is an ordinary one.
 */
function more(next: string | null, searchedTo: Date | null = null, appends = true): Html {
  const label = searchedTo === null ? 'Load older entries' : 'Search on'
  const append = html`hx-get="${next}" hx-target="#log-rows" hx-swap="beforeend"
  hx-select="#log-rows > tr" hx-select-oob="#log-more"`
  return html`<p id="log-more" class="more">
    ${searchedTo !== null && html`Searched back to ${timeTag(searchedTo)}.`}
    ${
      next === null
        ? html`<span id="log-more-link" class="muted" tabindex="-1">No older entries.</span>`
        : html`<a id="log-more-link" href="${next}" ${appends && append}>${label}</a>`
    }
  </p>`
}

/** What was there when the link to this page was made may have been removed since. */
function nothingOlder(newest: string): Html {
  return html`<div class="panel empty">
    <p><strong>Nothing older is kept.</strong></p>
    <p><a href="${newest}">Show the newest</a></p>
  </div>`
}

function noEvents(filter: LogFilter): Html {
  const { provider, event_type, since, text, json } = filter
  const filtered = [provider, event_type, since, text, json].some((value) => value !== '')
  return html`<div class="panel empty">
    ${
      filtered
        ? html`<p><strong>No event matches these filters.</strong></p>
            <p><a href="/log">Show all events</a></p>`
        : html`<p><strong>No event was received yet.</strong></p>
            <p>The <a href="/">dashboard</a> shows how to send the first one.</p>`
    }
  </div>`
}
