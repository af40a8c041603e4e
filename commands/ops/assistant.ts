import { assistantQueries } from '../../db/ops/assistants/assistants.ts'
import { clientConfiguration } from '../../kernel/mcp/server.ts'
import { oneOf } from '../../kernel/variables.ts'
import {
  addAssistant,
  MAX_ASSISTANTS,
  revokeAssistant,
} from '../../services/ops/assistants/assistants/assistants.ts'
import { serviceUrl } from '../frame/configuration.ts'
import { command, JSON_FLAG, text, value } from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

const NAME = text('NAME', 'the name of the assistant')

/** `gatehouse assistant …`: who may call the tools of ops. */
export const commands = [
  command({
    name: 'assistant add',
    summary: 'let an assistant read ops (MCP); its token is the last line of the output',
    args: { name: NAME },
    flags: { allow: value('start', 'it may also start sessions', oneOf('start')) },
    needs: 'database',
    async run({ args: { name }, flags }, tools) {
      const { config, addresses, output } = tools
      const wanted = { name, may_start: flags.allow === 'start' }
      const token = await addAssistant(tools, wanted, tools.now())
      const base = serviceUrl('ops', config, addresses) ?? 'http://HOST'
      output.err(`${name} added. Client configuration, with the token below for TOKEN:`)
      output.err(clientConfiguration(base, 'ops', 'TOKEN'))
      output.out(token)
    },
  }),
  command({
    name: 'assistant list',
    summary: 'list the assistants',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      const rows = await assistantQueries.listAssistants(db, { limit: MAX_ASSISTANTS })
      printRows(output, json, rows, {
        NAME: ({ name }) => name,
        MAY: ({ may_start }) => (may_start ? 'read,start' : 'read'),
        CREATED: ({ created_at }) => created_at.toISOString(),
        'LAST USED': ({ last_used_at }) => last_used_at?.toISOString() ?? 'never',
      })
    },
  }),
  command({
    name: 'assistant revoke',
    summary: 'remove an assistant: its token stops working at once',
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await revokeAssistant(tools, name)
      tools.output.err(`${name} is revoked; its token no longer works`)
    },
  }),
]
