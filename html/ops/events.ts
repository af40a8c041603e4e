import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import { anyOf, plainChoice, filterForm, plainField } from '../form.ts'
import { emptyState, nextLink, listTable, tableRow, timeTag } from '../parts.ts'
import { levelBadge, opsView, sessionLink, type Listed } from './layout.ts'

/** What `/events` shows. */
export interface FoundEvents extends Listed<Event> {
  /** Filters; null for all. */
  level: string | null
  service: string | null
}

const LEVELS = anyOf('critical', 'warning', 'info')

export function eventsView(found: FoundEvents): View {
  const { rows, older, level, service } = found
  const isFiltered = level !== null || service !== null
  const content = html`<section id="events-results" aria-label="Events">
    ${eventTable('event-rows', 'Events, newest first', rows, isFiltered)}
    ${nextLink(older, 'Older events')}
  </section>`
  return opsView('Events', content, { above: eventFilter(found) })
}

/** Events as rows, newest first, or what stands in their place. */
export function eventTable(
  bodyId: string,
  caption: string,
  events: readonly Event[],
  isFiltered = false,
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'feed',
    columns: ['Message', 'Level', 'Service', 'Session', 'Time'],
    rows: events.map(eventRow),
    whenEmpty: emptyState(isFiltered ? 'No events match these filters.' : 'No events yet.'),
  })
}

function eventRow({ id, level, service, message, session_id, created_at }: Event): Html {
  const session = session_id !== null && sessionLink(session_id)
  return tableRow(
    { 'data-id': id },
    {
      type: message,
      verify: levelBadge(level),
      service,
      session,
      when: timeTag(created_at),
    },
  )
}

function eventFilter({ level, service }: FoundEvents): Html {
  return filterForm(
    'Events',
    { path: '/events', results: 'events-results' },
    html`${plainChoice('Level', level ?? '', LEVELS, { name: 'level', id: 'events-level' })}
      ${plainField('Service', { name: 'service', id: 'events-service', value: service ?? '' })}
      <button type="submit" id="events-filter">Filter</button>`,
  )
}
