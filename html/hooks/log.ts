import type { EventSummary } from '../../db/hooks/events.ts'
import type { Rejection } from '../../db/hooks/rejections.ts'
import type { LogQuery } from '../../services/hooks/event-filter.ts'
import { html, type Html } from '../../kernel/html.ts'
import { hooksPage } from './layout.ts'
import { attributes, listTable, timeTag, type Attributes } from '../parts.ts'
import { eventRow, eventTable } from './event-row.ts'
import { filterForm } from '../form.ts'

/** The filters of `/log` as they stand in its URL; empty text means no filter. */
export type LogFilter = Pick<
  LogQuery,
  'provider' | 'event_type' | 'since' | 'limit' | 'text' | 'json'
>

/** A page of `/log`. */
export interface LogView {
  readonly filter: LogFilter
  readonly providers: readonly string[]
  readonly events: readonly EventSummary[]
  /** True for a page that begins at a cursor. */
  readonly below: boolean
  /** Path and query of the next page, or null on the last one. */
  readonly next: string | null
  /** Where a search ran out of time; `next` continues from there. */
  readonly searchedTo: Date | null
}

/** A page of `/log?rejected=1`. */
export interface RejectionsView extends Omit<LogView, 'events' | 'searchedTo'> {
  readonly rejections: readonly Rejection[]
}

/**
 * `/log`: the events, newest first. The stream continues from `position`, read before the events.
 */
export function logPage(view: LogView, position: number): Html {
  return hooksPage({
    title: 'Log',
    section: 'log',
    body: html`<div data-live="${position}">
      <h1>Log</h1>
      ${tabs(false)} ${logFilter(view.filter, view.providers, false)} ${logFragment(view)}
    </div>`,
  })
}

/**
 * The table of `/log` with its link to the next page: the answer to htmx. The filter form takes all
 * of it; the link takes the rows and the next link.
 */
export function logFragment(view: LogView): Html {
  const { filter, events, below, next, searchedTo } = view
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
      ${logFilter(view.filter, view.providers, true)} ${rejectionsFragment(view)}`,
  })
}

/** The table of `/log?rejected=1`; used as `logFragment` is. */
export function rejectionsFragment({ filter, rejections, below, next }: RejectionsView): Html {
  const isEmpty = rejections.length === 0
  const table = listTable({
    bodyId: 'log-rows',
    caption: 'Refused deliveries, newest first',
    columns: ['Provider', 'Reason', 'Time', 'Status', 'Source'],
    rows: rejections.map(rejectionRow),
  })
  const whenEmpty = below
    ? nothingOlder(logUrl({ ...filter, rejected: true }))
    : noRejections(filter)
  return html`<div id="log-results" class="results">
    ${isEmpty ? whenEmpty : table} ${(!isEmpty || below) && more(next)}
  </div>`
}

function noRejections({ provider }: LogFilter): Html {
  return html`<div class="panel empty">
    <p>
      <strong>Nothing was refused${provider !== '' && ' from this provider'}.</strong>
    </p>
    <p class="muted">A delivery with a wrong signature or token would be listed here.</p>
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
 * Both states have the same id, so that htmx returns the focus to it. Below an empty list there is
 * nothing to append to, so the link is an ordinary one.
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

/** The events of this page may have been removed since its link was made. */
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

const DEFAULT_LIMIT = 50

/** The address of a filtered log, without what is empty or the default. */
export function logUrl(filter: Partial<LogFilter> & { readonly rejected?: boolean }): string {
  const query = new URLSearchParams()
  if (filter.rejected === true) query.set('rejected', '1')
  for (const name of ['provider', 'event_type', 'since', 'text', 'json'] as const) {
    const value = filter[name]
    if (value !== undefined && value !== '') query.set(name, value)
  }
  if (filter.limit !== undefined && filter.limit !== DEFAULT_LIMIT) {
    query.set('limit', String(filter.limit))
  }
  return query.size === 0 ? '/log' : `/log?${query}`
}

/**
 * The filters above the log. They are an ordinary GET form; htmx replaces `#log-results` by the
 * fragment that the same URL answers to it, and puts that URL into the address bar.
 */
function logFilter(filter: LogFilter, providers: readonly string[], rejected: boolean): Html {
  return filterForm(
    'Filter',
    { path: '/log', results: 'log-results' },
    html`${rejected && html`<input type="hidden" name="rejected" value="1" />`}
      <label class="half">
        Provider
        <select name="provider">
          <option value="">All</option>
          ${choices(filter.provider, providers).map(
            (name) => html`<option ${name === filter.provider && html`selected`}>${name}</option>`,
          )}
        </select>
      </label>
      ${!rejected && eventFields(filter)}
      <label class="narrow">
        Rows
        <input${attributes({
          ...{ type: 'number', name: 'limit', min: 1, max: 200, value: filter.limit },
          'data-default': DEFAULT_LIMIT,
        })} />
      </label>
      <div class="actions">
        <button type="submit" class="primary">Filter</button>
        <a href="${logUrl({ rejected })}">Clear</a>
      </div>`,
  )
}

function eventFields(filter: LogFilter): Html {
  const plain = { autocomplete: 'off', spellcheck: 'false' }
  const text = (name: keyof LogFilter, own: Attributes): Html =>
    html`<input${attributes({ name, value: filter[name], ...own, ...plain })} />`
  return html`<label class="half">Event type ${text('event_type', {})}</label>
    <label>
      Since
      ${text('since', {
        placeholder: '2026-05-04T08:30Z or id',
        title: 'A date and time with time zone, or an event id',
      })}
    </label>
    <label>
      Payload contains
      ${text('text', {
        title: 'Text in the first MiB of the payload; upper and lower case differ',
      })}
    </label>
    <label>
      JSON member
      ${text('json', {
        placeholder: 'data.object.id=evt_1',
        title: 'A path into the JSON payload (1 MiB at most) and the value it must have',
      })}
    </label>`
}

/** A removed provider still has events, so the provider of the URL is always offered. */
function choices(chosen: string, providers: readonly string[]): readonly string[] {
  return chosen === '' || providers.includes(chosen) ? providers : [chosen, ...providers]
}
