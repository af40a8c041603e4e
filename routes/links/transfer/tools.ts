import { postMcp } from '../../../kernel/mcp/post.ts'
import { token } from '../access.ts'
import { raw } from '../kit.ts'

/** No call lasts: the token is looked up for each. */
const NEVER = new AbortController().signal

/** What assistants call by MCP (decisions.md section 7, New open paths). */
export const toolEndpoints = [
  raw({
    method: 'POST',
    path: '/mcp/links',
    access: { ...token('full', 'read', 'create'), guard: 'strict' },
    answer({ app: { links, toolServerOf }, caller, context }) {
      return postMcp(toolServerOf(caller), context, { clock: links.clock, signal: NEVER })
    },
  }),
]
