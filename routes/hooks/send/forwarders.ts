import * as Type from '../../../kernel/schema.ts'
import { forwardersFragment } from '../../../html/hooks/send/forwarders.ts'
import { Fault } from '../../../kernel/fault.ts'
import { anyone } from '../../../kernel/http/endpoint.ts'
import { forgetForwarder } from '../../../services/hooks/send/forwarders/forwarders.ts'
import {
  FORWARD_PROTOCOL,
  ForwardRequest,
} from '../../../services/hooks/send/forwarders/protocol.ts'
import { form, raw } from '../kit.ts'
import { settingsView } from '../settings.ts'

/** Messages of forwarders are short. */
const MAX_MESSAGE = 16 * 1024

/** The WebSocket of `gatehouse forward` (decisions.md section 3, Forwarding), and its form. */
export const forwarderEndpoints = [
  raw({
    path: '/relay',
    // A browser opens a WebSocket for any page: the origin is checked.
    access: { ...anyone, guard: 'strict' },
    webSocketOf: 'gatehouse forward',
    query: ForwardRequest,
    async answer({ app: { hooks }, query }) {
      const forwarder = await hooks.forwarders.attach(query)
      return {
        status: 101,
        protocol: FORWARD_PROTOCOL,
        maxMessage: MAX_MESSAGE,
        open: (channel) => hooks.forwarders.open(channel, forwarder),
      }
    },
  }),

  form({
    path: '/settings/forwarders/:name/forget',
    params: { name: Type.String() },
    async answer({ app, actor, params: { name } }) {
      // A connected forwarder would be told that another one had taken its name.
      if (app.hooks.forwarders.names().includes(name)) {
        throw new Fault(409, 'CONNECTED', 'The forwarder is connected; stop it first.')
      }
      await forgetForwarder({ ...app.hooks, actor }, name)
      return { ...(await settingsView(app, forwardersFragment)), done: ['removed', name] }
    },
  }),
]
