import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import { filterChoice, filterForm, filterText } from '../form.ts'
import { emptyState, nextLink, listTable, timeTag } from '../parts.ts'
import { opsPage, levelBadge } from './layout.ts'

/** What `/events` shows. */
export interface EventsView {
  readonly events: readonly Event[]
  /** Filters; null for all. */
  readonly level: string | null
  readonly service: string | null
  readonly older: string | undefined
}

const LEVELS = [
  ['', 'Any'],
  ['critical', 'Critical'],
  ['warning', 'Warning'],
  ['info', 'Info'],
] as const

export function eventsPage(view: EventsView): Html {
  return opsPage({
    title: 'Events',
    section: 'events',
    body: html`<h1>Events</h1>
      ${eventFilter(view)} ${eventsFragment(view)}`,
  })
}

export function eventsFragment({ events, older, level, service }: EventsView): Html {
  const isFiltered = level !== null || service !== null
  return html`<section id="events-results" aria-label="Events">
    ${
      events.length === 0
        ? emptyState(isFiltered ? 'No events match these filters.' : 'No events yet.')
        : eventTable('event-rows', 'Events, newest first', events)
    }
    ${nextLink(older, 'Older events')}
  </section>`
}

/** Events as rows, newest first. */
export function eventTable(bodyId: string, caption: string, events: readonly Event[]): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'feed',
    columns: ['Message', 'Level', 'Service', 'Session', 'Time'],
    rows: events.map(eventRow),
  })
}

function eventRow({ id, level, service, message, session_id, created_at }: Event): Html {
  return html`<tr role="row" data-id="${id}">
    <td role="cell" class="type">${message}</td>
    <td role="cell" class="verify">${levelBadge(level)}</td>
    <td role="cell">${service}</td>
    <td role="cell">
      ${session_id !== null && html`<a href="/sessions/${session_id}">session ${session_id}</a>`}
    </td>
    <td role="cell" class="when">${timeTag(created_at)}</td>
  </tr>`
}

function eventFilter({ level, service }: EventsView): Html {
  return filterForm(
    'Events',
    { path: '/events', results: 'events-results' },
    html`${filterChoice('Level', level ?? '', LEVELS, { name: 'level', id: 'events-level' })}
      ${filterText('Service', { name: 'service', id: 'events-service', value: service ?? '' })}
      <button type="submit" id="events-filter">Filter</button>`,
  )
}
