import * as Type from '../../../kernel/schema.ts'
import { endpointsFragment } from '../../../html/hooks/agents/endpoints.ts'
import { postMcp } from '../../../kernel/mcp/post.ts'
import { clientConfiguration } from '../../../kernel/mcp/server.ts'
import {
  createEndpoint,
  EndpointForm,
  revokeEndpoint,
} from '../../../services/hooks/agents/endpoints/changes.ts'
import { endpointHolder } from '../access.ts'
import { form, raw } from '../kit.ts'
import { settingsView } from '../settings.ts'

/** The endpoints of the tool protocol: where programs call them, and the forms of `/settings`. */
export const mcpEndpoints = [
  // decisions.md section 3, Tool protocol.
  raw({
    method: 'POST',
    path: '/mcp/:endpoint',
    access: endpointHolder,
    answer({ app: { hooks, toolServerOf }, caller, context }) {
      const { endpoints, clock } = hooks
      return postMcp(toolServerOf(caller), context, { clock, signal: endpoints.signalOf(caller) })
    },
  }),

  form({
    path: '/settings/endpoints',
    body: EndpointForm,
    async answer({ app, actor, body }) {
      const name = body.name.trim()
      const wanted = { name, may_replay: body.allow_replay }
      const created = await createEndpoint({ ...app.hooks, actor }, wanted)
      await app.hooks.registry.refresh()
      const configuration = clientConfiguration(app.baseUrl(), name, created.token)
      const made = { ...created, configuration }
      return { ...(await settingsView(app, endpointsFragment, { made })), done: ['created', name] }
    },
    refused: ({ app }, refused) => settingsView(app, endpointsFragment, { newEndpoint: refused }),
  }),

  form({
    path: '/settings/endpoints/:name/revoke',
    params: { name: Type.String() },
    async answer({ app, actor, params: { name } }) {
      await revokeEndpoint({ ...app.hooks, actor }, name)
      await app.hooks.registry.refresh()
      return { ...(await settingsView(app, endpointsFragment)), done: ['revoked', name] }
    },
  }),
]
