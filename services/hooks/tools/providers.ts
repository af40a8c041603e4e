import Type from 'typebox'
import { type Tool, defineTool, toolValue } from '../../../kernel/mcp/server.ts'
import { ProviderStatus, providerStatus, readProviders } from '../providers.ts'
import { READ_ONLY, type ToolOptions } from './options.ts'

/** `list_providers`: who may send, and whether they can. */
export function providersTool({ db, clock, secrets }: ToolOptions): Tool {
  return defineTool({
    name: 'list_providers',
    title: 'List webhook providers',
    description:
      'Lists the senders of webhooks: how each is trusted, whether it is enabled, whether its ' +
      'secret is configured (never the secret), and the path or channel it sends to.',
    input: Type.Object({}, { additionalProperties: false }),
    output: Type.Object({ providers: Type.Array(ProviderStatus) }),
    annotations: READ_ONLY,
    async call() {
      const rows = await readProviders(db, clock.now())
      return toolValue({ providers: rows.map((row) => providerStatus(row, secrets)) })
    },
  })
}
