import { queryOf, type Context } from '../../kernel/http/context.ts'
import { unavailable } from '../../kernel/fault.ts'
import type { Answer, Route } from '../../kernel/http/router.ts'
import { NO_ROOM } from '../../services/hooks/forward/forwarders.ts'
import { RELAY_PROTOCOL, readRelayRequest } from '../../services/hooks/forward/protocol.ts'
import { badRequest, hooksFault } from './faults.ts'
import type { HooksRoutes } from './options.ts'

/** What a forwarder says is short. */
const MAX_MESSAGE = 16 * 1024

/** `GET /relay` (decisions.md section 3, Forwarding): the WebSocket of `gatehouse forward`. */
export function relayRoute({ hooks }: HooksRoutes): Route {
  async function handle(context: Context): Promise<Answer> {
    const request = readRelayRequest(queryOf(context))
    if (typeof request === 'string') return hooksFault(badRequest(request), context)
    const forwarder = await hooks.relay.attach(request)
    if (forwarder === undefined) return hooksFault(unavailable(NO_ROOM, 5), context)
    return {
      status: 101,
      protocol: RELAY_PROTOCOL,
      maxMessage: MAX_MESSAGE,
      open: (channel) => hooks.relay.open(channel, forwarder),
    }
  }

  return { method: 'GET', path: '/relay', access: 'strict', speaksWebSocket: true, handle }
}
