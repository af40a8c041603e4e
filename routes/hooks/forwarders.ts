import { forwarderQueries } from '../../db/hooks/forwarders.ts'
import { forwardersFragment, type ForwardersView } from '../../html/hooks/forwarders.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { Html } from '../../kernel/html.ts'
import { queryOf, type Context } from '../../kernel/http/context.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import { readRelayRequest, RELAY_PROTOCOL } from '../../services/hooks/forward/protocol.ts'
import { wantsFullPage } from '../form.ts'
import type { HooksRoutes } from './options.ts'

/** Beyond this it is enough to know that there are many. */
const COUNT_UP_TO = 1_000
const MAX_LISTED = 1_000
/** Messages of forwarders are short. */
const MAX_MESSAGE = 16 * 1024

/** Reads what the settings page shows of forwarding. */
export async function forwardersView({ hooks, baseUrl }: HooksRoutes): Promise<ForwardersView> {
  const forwarders = await forwarderQueries.listForwarders(hooks.db, {
    count_up_to: COUNT_UP_TO,
    limit: MAX_LISTED,
  })
  const connected = hooks.forwarders.names
  return { forwarders, connected, countedTo: COUNT_UP_TO, baseUrl: baseUrl() }
}

/** The form of the settings page that forgets a forwarder; `page` is the page around the list. */
export function forwarderRoute(options: HooksRoutes, page: () => Promise<Html>): Route {
  const { db, forwarders } = options.hooks

  async function forget(context: Context): Promise<Reply> {
    const name = context.params['name'] ?? ''
    // The forwarder would be told that another one had taken its name.
    if (forwarders.names.includes(name)) {
      throw new Fault(409, 'CONNECTED', 'The forwarder is connected; stop it first.')
    }
    if ((await forwarderQueries.removeForwarder(db, { name })) === undefined) {
      throw notFound('There is no forwarder under this name.')
    }
    if (wantsFullPage(context)) return htmlReply(await page())
    return htmlReply(forwardersFragment(await forwardersView(options)))
  }

  return {
    method: 'POST',
    path: '/settings/forwarders/:name/forget',
    access: 'guarded',
    handle: forget,
  }
}

/** `GET /relay` (decisions.md section 3, Forwarding): the WebSocket of `gatehouse forward`. */
export function relayRoute({ hooks }: HooksRoutes): Route {
  return {
    method: 'GET',
    path: '/relay',
    access: 'strict',
    speaksWebSocket: true,
    async handle(context) {
      const forwarder = await hooks.forwarders.attach(readRelayRequest(queryOf(context)))
      return {
        status: 101,
        protocol: RELAY_PROTOCOL,
        maxMessage: MAX_MESSAGE,
        open: (channel) => hooks.forwarders.open(channel, forwarder),
      }
    },
  }
}
