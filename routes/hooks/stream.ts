import { queryOf } from '../../kernel/context.ts'
import { unavailable } from '../../kernel/fault.ts'
import type { Route } from '../../kernel/router.ts'
import { STREAM_HEADERS } from '../../kernel/sse.ts'
import { eventTest } from '../../services/hooks/log-filter.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/**
 * `GET /events` (hooks.md section 6), all events or those of `?provider=` and `?event_type=`;
 * resumes by `Last-Event-ID` or `?last_event_id=`.
 */
export function streamRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/events',
    access: 'guarded',
    handle(context) {
      if (!hooks.live.hasRoom) return hooksFault(NO_ROOM, context)
      const query = queryOf(context)
      const given = context.headers['last-event-id'] ?? query.get('last_event_id')
      const wants = eventTest(query.get('provider'), query.get('event_type'))
      // An id that is none of ours means a client without a position: it follows from now on.
      const lastEventId =
        typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : undefined
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body: (sink) => hooks.live.connect(sink, lastEventId, wants),
      }
    },
  }
}

const NO_ROOM = unavailable(
  'As many streams are open as this process serves; try again shortly.',
  5,
)
