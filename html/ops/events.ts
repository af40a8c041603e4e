import type { Event } from '../../db/ops/rows.ts'
import { html, type Html } from '../../kernel/html.ts'
import { listFilter } from '../list-filter.ts'
import { eventTable } from './event-table.ts'
import { opsPage } from './layout.ts'
import { nextLink } from './parts.ts'

/** What `/events` shows. */
export interface EventsView {
  readonly events: readonly Event[]
  readonly level: string | null
  readonly service: string | null
  /** Address of older events; undefined when there are none. */
  readonly older: string | undefined
}

export function eventsPage(view: EventsView): Html {
  return opsPage({
    title: 'Events',
    section: 'events',
    body: html`<h1>Events</h1>
      ${filterForm(view)} ${eventsFragment(view)}`,
  })
}

/** The list alone, which htmx puts below the filters. */
export function eventsFragment({ events, older, level, service }: EventsView): Html {
  const filtered = level !== null || service !== null
  return html`<section id="events-results" aria-label="Events">
    ${
      events.length === 0
        ? html`<p class="panel empty">
            ${filtered ? 'No event is like that.' : 'Nothing was noted yet.'}
          </p>`
        : eventTable('event-rows', 'Events, newest first', events)
    }
    ${nextLink(older, 'Older events')}
  </section>`
}

function filterForm({ level, service }: EventsView): Html {
  return listFilter({
    label: 'Events',
    path: '/events',
    results: 'events-results',
    fields: html`<label class="half">
        Level
        <select name="level" id="events-level">
          ${[
            ['', 'Any'],
            ['critical', 'Critical'],
            ['warning', 'Warning'],
            ['info', 'Info'],
          ].map(
            ([value, label]) =>
              html`<option value="${value}" ${value === (level ?? '') && html`selected`}>
                ${label}
              </option>`,
          )}
        </select>
      </label>
      <label>
        Service
        <input name="service" id="events-service" value="${service}" autocomplete="off" />
      </label>
      <button type="submit" id="events-filter">Filter</button>`,
  })
}
