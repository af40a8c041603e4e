import { postMcp } from '../../../kernel/mcp/post.ts'
import { sessionAgent } from '../access.ts'
import { raw } from '../kit.ts'

/** Where the agent of a session calls the tools of its tier, by the tool protocol. */
export const toolEndpoints = [
  raw({
    method: 'POST',
    path: '/mcp/session',
    access: sessionAgent,
    answer({ app: { ops }, caller: { server, signal }, context }) {
      return postMcp(server, context, { clock: ops.clock, signal })
    },
  }),
]
