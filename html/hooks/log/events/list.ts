import { html, type Html, type Printable } from '../../../../kernel/html.ts'
import type { Page } from '../../../../kernel/http/view.ts'
import { attributes, button, emptyState, moreLink, timeTag } from '../../../parts.ts'
import { tabs } from '../../../ways.ts'
import type { EventRow } from '../../../../services/hooks/log/events/previews.ts'
import { searchMenu, type SearchMenu } from '../searches.ts'
import { eventFragment, type EventView } from '../../event.ts'
import { eventTable } from './row.ts'
import { filterLine, isFiltered, logFilter, type FilterLine, type FilterView } from './filter.ts'
import { logUrl, type LogFilter } from '../../log-url.ts'

/** A page of a list with its filters. */
export interface ListView extends FilterView {
  /** True for a page that begins at a cursor. */
  below: boolean
  /** Path and query of the next page, or null on the last one. */
  next: string | null
  /** Where a search ran out of time; `next` continues from there. */
  searchedTo?: Date | null
}

/** A page of `/log`. */
interface LogView extends ListView, FilterLine, SearchMenu {
  events: readonly EventRow[]
  /** No event up to this one is missing in the list. */
  position: number
  /** The event that stands beside the list; 0 for none. */
  open: number
}

/**
 * `/log`: the events, newest first. The stream continues from `position`. `opened` is the event
 * beside the list, unless retention has removed it.
 */
export function logPage(view: LogView, opened?: EventView): Page {
  return {
    title: 'Log',
    section: 'log',
    script: 'hooks.js',
    body: html`<div data-stream="/events" data-last="${view.position}">
      ${listHead('events', !view.below && PAUSE)} ${logFilter(view)}
      <div class="split">${logFragment(view)} ${beside(view, opened)}</div>
    </div>`,
  }
}

/** Holds the list still; rows come on top by script alone. */
const PAUSE = button('Pause', { id: 'log-pause', class: 'js-only', 'aria-pressed': 'false' })

/**
 * The place of the event that was opened from the list: the script puts it here on a wide screen.
 */
function beside({ filter, open }: LogView, opened: EventView | undefined): Html {
  const gone = open !== 0 && html`<p class="note">This event was removed by retention.</p>`
  return html`<section class="beside" aria-label="Open event">
    <p class="actions"><a id="log-close" href="${logUrl(filter)}">Close</a></p>
    <div id="log-open" class="opened" hx-sync="this:replace" data-open="${open}">
      ${opened === undefined ? gone : eventFragment(opened)}
    </div>
  </section>`
}

/**
 * The table of `/log` with its link to the next page: the answer to htmx. The filter form takes
 * all of it; the link takes the rows and the next link. The script adds the rows above `position`,
 * or says on top how many there are.
 */
export function logFragment(view: LogView): Html {
  const { filter, events, position, open } = view
  const table = eventTable('log-rows', 'Events, newest first', events, open)
  const newest = logUrl(filter)
  const show = {
    class: 'saved',
    href: newest,
    hidden: true,
    'hx-get': newest,
    'hx-target': '#log-results',
    'hx-swap': 'outerHTML',
  }
  return html`<div
    id="log-results"
    data-newest="${newest}"
    data-position="${position}"
  >
    ${filterLine(view, searchMenu(view))}
    <p id="log-news" class="news" role="status"><a${attributes(show)}></a></p>
    ${listPart(view, events.length > 0 && table, noEvents(filter))}
  </div>`
}

/** The lists of the log, with their addresses and names. */
const TABS = {
  events: ['/log', 'Events'],
  rejected: ['/log?rejected=1', 'Rejected'],
  replays: ['/replays', 'Replays'],
} as const

/** The title, and the lists of the log. */
export function listHead(shown: keyof typeof TABS, more: Printable = null): Html {
  const lists = Object.entries(TABS).map(([name, [href, label]]) => {
    return { href, label, isCurrent: name === shown }
  })
  return html`<div class="strip">
    <h1>Log</h1>
    ${tabs('Log', lists)} ${more}
  </div>`
}

/**
 * The table with the link to the next page. Without rows it says why, also where the events of a
 * page were removed since its link was made.
 */
export function listPart(view: ListView, table: Html | false, whenNone: Html): Html {
  const { filter, below, next, searchedTo = null } = view
  const goesOn = table !== false || searchedTo !== null
  const newest = html`<a href="${logUrl(filter)}">Show the newest</a>`
  const nothing = below ? emptyState('Nothing older is kept.', newest) : whenNone
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
    return emptyState('No event matches these filters.', way)
  }
  const way = html`The <a href="/">dashboard</a> shows how to send the first one.`
  return emptyState('No event was received yet.', way)
}
