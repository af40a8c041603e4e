import Type from 'typebox'
import { forwarderQueries } from '../../db/hooks/forwarders.ts'
import { forwardersFragment, type ForwardersView } from '../../html/hooks/forwarders.ts'
import { Fault, notFound } from '../../kernel/fault.ts'
import type { Html } from '../../kernel/html.ts'
import { queryOf } from '../../kernel/http/context.ts'
import type { Endpoint } from '../../kernel/http/endpoint.ts'
import type { Route } from '../../kernel/http/router.ts'
import { readRelayRequest, RELAY_PROTOCOL } from '../../services/hooks/forward/protocol.ts'
import { form, operator, type HooksRoutes } from './endpoint.ts'

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

/** The form of the settings page that forgets a forwarder; `pageWith` is the page around the list. */
export function forwarderForms(
  pageWith: (app: HooksRoutes, parts: { readonly forwarders: ForwardersView }) => Promise<Html>,
): readonly Endpoint<HooksRoutes>[] {
  return [
    form({
      path: '/settings/forwarders/:name/forget',
      access: operator,
      params: { name: Type.String() },
      async answer({ app, params: { name } }) {
        // A connected forwarder would be told that another one had taken its name.
        if (app.hooks.forwarders.names.includes(name)) {
          throw new Fault(409, 'CONNECTED', 'The forwarder is connected; stop it first.')
        }
        if ((await forwarderQueries.removeForwarder(app.hooks.db, { name })) === undefined) {
          throw notFound('There is no forwarder under this name.')
        }
        const forwarders = await forwardersView(app)
        return {
          page: () => pageWith(app, { forwarders }),
          fragment: () => forwardersFragment(forwarders),
        }
      },
    }),
  ]
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
