import type { Event } from '../../db/ops/events.ts'
import { html, type Html } from '../../kernel/html.ts'
import type { View } from '../../kernel/http/view.ts'
import { anyOf, field, filterForm, select, submit } from '../form.ts'
import {
  countLine,
  countUpTo,
  disclosed,
  emptyState,
  listTable,
  longText,
  rowLink,
  tableRow,
  timeTag,
  type More,
} from '../parts.ts'
import { levelBadge, opsView, sessionLink, shortText, type Listed } from './layout.ts'

/** What `/events` shows. */
interface FoundEvents extends Listed<Event> {
  /** Filters; null for all. */
  level: string | null
  service: string | null
  /** How many match; counted up to `MAX_COUNT`. */
  count: number
}

const LEVELS = anyOf('critical', 'warning', 'info')
/** Characters of a message in its row; a longer one can be opened. */
const MAX_MESSAGE = 300

export function eventsView(found: FoundEvents): View {
  const { rows, older, level, service, count } = found
  const isFiltered = level !== null || service !== null
  const content = html`<section id="events-results" aria-label="Events">
    ${count > 0 && countLine(countUpTo(count, 'event'))}
    ${eventTable('event-rows', 'Events, newest first', rows, {
      isFiltered,
      // A list with all rows needs no line at its end.
      ...(rows.length < count && { more: { next: older ?? null, label: 'Older events' } }),
    })}
  </section>`
  return opsView('Events', content, { above: eventFilter(found) })
}

interface EventTableOptions {
  isFiltered?: boolean
  /** Whether they stand on the page of their session: rows don't lead to it then. */
  isOfSession?: boolean
  more?: More
}

/** Events as rows, newest first, or what stands in their place. */
export function eventTable(
  bodyId: string,
  caption: string,
  events: readonly Event[],
  { isFiltered = false, isOfSession = false, more }: EventTableOptions = {},
): Html {
  return listTable({
    bodyId,
    caption,
    kind: 'feed',
    columns: ['Message', 'Level', 'Service', ...(isOfSession ? [] : ['Session']), 'Time'],
    rows: events.map((event) => eventRow(event, isOfSession)),
    whenEmpty: emptyState(isFiltered ? 'No events match these filters.' : 'No events yet.'),
    ...(more !== undefined && { more }),
  })
}

/** The row leads to the session that recorded the event, unless it stands on its page. */
function eventRow(event: Event, isOfSession: boolean): Html {
  const { id, level, service, message, session_id, created_at } = event
  const text = shortText(message, MAX_MESSAGE)
  const isCut = text.endsWith('…')
  const hasLink = session_id !== null && !isOfSession
  return tableRow(
    { 'data-id': id },
    {
      type: html`${hasLink ? rowLink(`/sessions/${session_id}`, text) : text}
      ${isCut && disclosed('Whole message', longText(`Message of event ${id}`, message))}`,
      verify: levelBadge(level),
      service,
      ...(!isOfSession && { session: session_id !== null && sessionLink(session_id) }),
      when: timeTag(created_at),
    },
  )
}

function eventFilter({ level, service }: FoundEvents): Html {
  const form = { id: 'filter', typed: { level: level ?? '', service: service ?? '' } }
  return filterForm(
    'Events',
    { path: '/events', results: 'events-results' },
    html`${select(form, 'level', 'Level', LEVELS, 'half')} ${field(form, 'service', 'Service')}
    ${submit('Filter', {})}`,
  )
}
