import { queryOf } from '../../kernel/context.ts'
import { unavailable } from '../../kernel/fault.ts'
import type { Route } from '../../kernel/router.ts'
import { STREAM_HEADERS } from '../../kernel/sse.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** `GET /events` (hooks.md section 6); resumes by `Last-Event-ID` or `?last_event_id=`. */
export function streamRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/events',
    access: 'guarded',
    handle(context) {
      if (!hooks.live.hasRoom) return hooksFault(NO_ROOM, context)
      const given = context.headers['last-event-id'] ?? queryOf(context).get('last_event_id')
      // An id that is none of ours means a client without a position: it follows from now on.
      const lastEventId =
        typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : undefined
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body: (sink) => hooks.live.connect(sink, lastEventId),
      }
    },
  }
}

const NO_ROOM = unavailable(
  'As many streams are open as this process serves; try again shortly.',
  5,
)
