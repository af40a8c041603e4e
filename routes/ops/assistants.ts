import { postMcp } from '../../kernel/mcp/post.ts'
import { assistant } from './access.ts'
import { raw } from './kit.ts'

/** No call lasts: the token is looked up for each. */
const NEVER = new AbortController().signal

/** Where people's own assistants call the tools that read ops, by the tool protocol. */
export const assistantEndpoints = [
  raw({
    method: 'POST',
    path: '/mcp/ops',
    access: assistant,
    answer({ app: { ops, assistants }, caller, context }) {
      return postMcp(assistants.serverOf(caller), context, { clock: ops.clock, signal: NEVER })
    },
  }),
]
