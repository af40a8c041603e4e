import { endpointQueries } from '../../db/hooks/agents/endpoints.ts'
import { clientConfiguration } from '../../kernel/mcp/server.ts'
import { oneOf } from '../../kernel/variables.ts'
import { createEndpoint, revokeEndpoint } from '../../services/hooks/agents/endpoints/changes.ts'
import { serviceUrl } from '../frame/configuration.ts'
import { command, JSON_FLAG, text, value } from '../frame/command.ts'
import { printRows } from '../frame/output.ts'

const NAME = text('NAME', 'the name of the endpoint, a part of its URL')

const NO_ADDRESS =
  'HOST stands for where clients reach hooks: its address names no TCP port; HOOKS_BASE_URL does'

/** `gatehouse endpoint …`: where programs reach the tools of hooks. */
export const commands = [
  command({
    name: 'endpoint add',
    summary: 'add an endpoint for programs (MCP); its token is the last line of the output',
    args: { name: NAME },
    flags: { allow: value('replay', 'programs may also replay events', oneOf('replay')) },
    needs: 'database',
    async run({ args: { name }, flags }, tools) {
      const { config, addresses, output } = tools
      const wanted = { name, may_replay: flags.allow === 'replay' }
      const made = await createEndpoint(tools, wanted)
      const baseUrl = serviceUrl('hooks', config, addresses)
      output.err(`${name} created. Client configuration, with the token below for TOKEN:`)
      output.err(clientConfiguration(baseUrl ?? 'http://HOST', name, 'TOKEN'))
      if (baseUrl === undefined) output.err(NO_ADDRESS)
      output.out(made.token)
    },
  }),
  command({
    name: 'endpoint list',
    summary: 'list the endpoints',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      printRows(output, json, await endpointQueries.listEndpoints(db, {}), {
        NAME: ({ name }) => name,
        MAY: ({ may_replay }) => (may_replay ? 'read,replay' : 'read'),
        CREATED: ({ created_at }) => created_at.toISOString(),
        'LAST USED': ({ last_used_at }) => last_used_at?.toISOString() ?? 'never',
      })
    },
  }),
  command({
    name: 'endpoint revoke',
    summary: 'remove an endpoint: its token stops working at once',
    args: { name: NAME },
    needs: 'database',
    async run({ args: { name } }, tools) {
      await revokeEndpoint(tools, name)
      tools.output.err(`${name} is revoked; its token no longer works`)
    },
  }),
]
