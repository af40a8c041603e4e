import Type from 'typebox'
import { queryOf } from '../../kernel/http/context.ts'
import { unavailable } from '../../kernel/fault.ts'
import type { Sink } from '../../kernel/http/reply.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { refuseRepeated } from '../../kernel/validate.ts'
import { STREAM_HEADERS } from '../../kernel/http/sse.ts'
import { eventTest } from '../../services/hooks/events/filter.ts'
import { readForwardRequest, FORWARD_PROTOCOL } from '../../services/hooks/forwarders/protocol.ts'
import type { Route } from '../../kernel/http/router.ts'
import { follower } from './access.ts'
import { hooksFault } from './faults.ts'
import type { HooksRoutes } from './kit.ts'

/** Messages of forwarders are short. */
const MAX_MESSAGE = 16 * 1024

/**
 * `GET /events` (hooks.md section 6), all events or those of `?provider=` and `?event_type=`;
 * resumes by `Last-Event-ID` or `?last_event_id=`.
 */
export function streamRoute(app: HooksRoutes): Operation {
  const { hooks } = app
  return {
    method: 'GET',
    path: '/events',
    access: follower.guard,
    id: 'streamEvents',
    tag: 'Events',
    summary: 'Follow the events as they are stored.',
    description:
      'Server-sent events: event-received with an EventSummary and its id, status, and gap ' +
      'where a client that comes back with Last-Event-ID has missed more than is replayed.',
    needsToken: follower.needsToken,
    query: StreamQuery,
    replies: {
      200: { description: 'The stream', schema: Type.String(), type: 'text/event-stream' },
    },
    refusals: [400, 401, 403, 503],
    async handle(context) {
      const caller = await follower.identify(app, context)
      if (!hooks.stream.hasRoom) return hooksFault(app, NO_ROOM, context)
      const query = queryOf(context)
      refuseRepeated(StreamQuery, query)
      const given = context.headers['last-event-id'] ?? query.get('last_event_id')
      const wants = eventTest(query.get('provider'), query.get('event_type'))
      // An id that is none of ours means a client without a position: it follows from now on.
      const lastEventId =
        typeof given === 'string' && /^\d{1,15}$/.test(given) ? Number(given) : undefined
      return {
        status: 200,
        headers: STREAM_HEADERS,
        body(sink) {
          if (caller !== undefined) endWhenRevoked(hooks.endpoints.signalOf(caller), sink)
          hooks.stream.connect(sink, lastEventId, wants)
        },
      }
    },
  }
}

/** A stream of an endpoint's token lasts until that is revoked. */
export function endWhenRevoked(revoked: AbortSignal, sink: Sink): void {
  const end = () => sink.destroy()
  if (revoked.aborted) end()
  revoked.addEventListener('abort', end)
  sink.onClose(() => revoked.removeEventListener('abort', end))
}

const StreamQuery = Type.Object({
  provider: Type.Optional(Type.String({ description: 'Only events of this provider' })),
  event_type: Type.Optional(
    Type.String({ description: 'Only events of this type; * stands for any characters' }),
  ),
  last_event_id: Type.Optional(Type.Integer({ description: 'Where to go on, as Last-Event-ID' })),
})

const NO_ROOM = unavailable(
  'As many streams are open as this process serves; try again shortly.',
  5,
)

/** `GET /relay` (decisions.md section 3, Forwarding): the WebSocket of `gatehouse forward`. */
export function forwardRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/relay',
    access: 'strict',
    webSocketOf: 'gatehouse forward',
    async handle(context) {
      const forwarder = await hooks.forwarders.attach(readForwardRequest(queryOf(context)))
      return {
        status: 101,
        protocol: FORWARD_PROTOCOL,
        maxMessage: MAX_MESSAGE,
        open: (channel) => hooks.forwarders.open(channel, forwarder),
      }
    },
  }
}
