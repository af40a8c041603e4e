import { sessionQueries as q } from '../../db/ops/sessions.ts'
import { queryOf } from '../../kernel/http/context.ts'
import { notFound, unavailable } from '../../kernel/fault.ts'
import type { Route } from '../../kernel/http/router.ts'
import { STREAM_HEADERS } from '../../kernel/http/sse.ts'
import { idOf } from './api/operation.ts'
import { opsFault } from './faults.ts'
import type { OpsApp } from './endpoint.ts'

/** The largest number that a line can have. */
const LAST_LINE = 2_147_483_647

/**
 * `GET /sessions/{id}/stream` (decisions.md section 5, Output): `line` with its number as id, then
 * `done` and the end. Resumes by `Last-Event-ID` or `?last_event_id=`.
 */
export function streamRoute({ ops }: OpsApp): Route {
  return {
    method: 'GET',
    path: '/sessions/:id/stream',
    access: 'guarded',
    async handle(context) {
      const id = idOf(context)
      if (id === undefined || (await q.findStatus(ops.db, { id })) === undefined) {
        return opsFault(notFound('session not found'), context)
      }
      if (!ops.lines.hasRoom) return opsFault(NO_ROOM, context)
      const given = context.headers['last-event-id'] ?? queryOf(context).get('last_event_id')
      // An id that is none of ours means a client that has nothing yet: it gets all.
      const known = typeof given === 'string' && /^\d{1,10}$/.test(given) ? Number(given) : 0
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body: (sink) => ops.lines.connect(sink, id, Math.min(known, LAST_LINE)),
      }
    },
  }
}

const NO_ROOM = unavailable(
  'As many streams are open as this process serves; try again shortly.',
  5,
)
