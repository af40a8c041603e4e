import * as Type from '../../../kernel/schema.ts'
import { assistantsFragment } from '../../../html/ops/assistants/assistants.ts'
import { postMcp } from '../../../kernel/mcp/post.ts'
import { clientConfiguration } from '../../../kernel/mcp/server.ts'
import {
  addAssistant,
  AssistantForm,
  revokeAssistant,
} from '../../../services/ops/assistants/assistants/assistants.ts'
import { assistant, outsideSessions } from '../access.ts'
import { showConfig } from '../config.ts'
import { form, raw } from '../kit.ts'

/** No call lasts: the token is looked up for each. */
const NEVER = new AbortController().signal

/** People's own assistants: where they call the tools that read ops, and the forms of `/config`. */
export const assistantEndpoints = [
  raw({
    method: 'POST',
    path: '/mcp/ops',
    access: assistant,
    answer({ app: { ops, assistants }, caller, context }) {
      return postMcp(assistants.serverOf(caller), context, { clock: ops.clock, signal: NEVER })
    },
  }),

  form({
    path: '/config/assistants',
    // With a token of its own an agent could start sessions after its session has ended.
    access: outsideSessions,
    body: AssistantForm,
    async answer({ app, actor, body, now }) {
      const name = body.name.trim()
      const wanted = { name, may_start: body.allow_start }
      const token = await addAssistant({ ...app.ops, actor }, wanted, now)
      const configuration = clientConfiguration(app.baseUrl(), 'ops', token)
      const made = { name, token, configuration }
      return { ...(await showConfig(app, assistantsFragment, { made })), done: ['created', name] }
    },
    refused: ({ app }, refused) => showConfig(app, assistantsFragment, { newAssistant: refused }),
  }),

  form({
    path: '/config/assistants/:name/revoke',
    params: { name: Type.String() },
    access: outsideSessions,
    async answer({ app, actor, params: { name } }) {
      await revokeAssistant({ ...app.ops, actor }, name)
      return { ...(await showConfig(app, assistantsFragment)), done: ['revoked', name] }
    },
  }),
]
