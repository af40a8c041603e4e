import * as Type from '../../../kernel/schema.ts'
import { unavailable } from '../../../kernel/fault.ts'
import type { Sink } from '../../../kernel/http/reply.ts'
import { STREAM_HEADERS } from '../../../kernel/http/sse.ts'
import { eventTest } from '../../../services/hooks/log/events/filter.ts'
import { follower, type Caller } from '../access.ts'
import { raw, type HooksRoutes } from '../kit.ts'

const StreamQuery = Type.Object({
  provider: Type.Optional(Type.String({ description: 'Only events of this provider' })),
  event_type: Type.Optional(
    Type.String({ description: 'Only events of this type; * stands for any characters' }),
  ),
  last_event_id: Type.Optional(
    Type.String({ description: 'As the header Last-Event-ID, which comes first' }),
  ),
})

const StreamHeaders = Type.Object({
  'last-event-id': Type.Optional(
    Type.String({
      description: 'The id of the last event that is known; other text means from now on',
    }),
  ),
})

const NO_ROOM = 'As many streams are open as this process serves; try again shortly.'

/** `GET /events` (hooks.md section 6): all events, or those that the query chooses. */
export const streamEndpoints = [
  raw({
    path: '/events',
    access: follower,
    query: StreamQuery,
    notes: {
      id: 'streamEvents',
      tag: 'Events',
      summary: 'Follow the events as they are stored.',
      description:
        'Server-sent events: event-received with an EventSummary and its id, status, and gap ' +
        'where a client that comes back with Last-Event-ID has missed more than is replayed.',
      headers: StreamHeaders,
      replies: {
        200: { description: 'The stream', schema: Type.String(), type: 'text/event-stream' },
      },
    },
    answer({ app: { hooks }, caller, query, context }) {
      if (!hooks.stream.hasRoom) throw unavailable(NO_ROOM, 5)
      const { provider, event_type, last_event_id } = query
      const lastEventId = readPosition(context.headers['last-event-id'] ?? last_event_id)
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body(sink) {
          endWhenRevoked(hooks, caller, sink)
          hooks.stream.connect(sink, lastEventId, eventTest(provider, event_type))
        },
      }
    },
  }),
]

/** The id of an event. Other text is undefined: the client has no position and starts from now. */
function readPosition(given: string | string[] = ''): number | undefined {
  return /^\d{1,15}$/.test(String(given)) ? Number(given) : undefined
}

/** A stream to the holder of a token lasts until the token is revoked. */
export function endWhenRevoked(
  { endpoints }: HooksRoutes['hooks'],
  caller: Caller,
  sink: Sink,
): void {
  if (caller === undefined) return
  const revoked = endpoints.signalOf(caller)
  const end = () => sink.destroy()
  if (revoked.aborted) end()
  revoked.addEventListener('abort', end)
  sink.onClose(() => revoked.removeEventListener('abort', end))
}
