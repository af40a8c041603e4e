import type { EndpointKey } from '../../../../../db/hooks/agents/endpoints.ts'
import type { Fault } from '../../../../../kernel/fault.ts'
import { messageOf } from '../../../../../kernel/log.ts'
import { boundedCall } from '../../../../../kernel/mcp/bounded-call.ts'
import type { McpServer, Tool } from '../../../../../kernel/mcp/server.ts'
import { TOO_MANY_CALLS } from '../endpoints.ts'
import { UNTRUSTED } from './arguments.ts'
import { getTool, listTool, recentResource, replayTool } from './events.ts'
import { payloadTemplate } from './payload.ts'
import { healthTool, providersTool, statsTool } from './providers.ts'
import { searchTool } from './search.ts'
import { waitTool } from './wait.ts'
import type { ToolParts } from './parts.ts'

/** What each endpoint of the hooks service offers (decisions.md section 3, Tool protocol). */
export function createToolServers(
  hooks: ToolParts,
  version: string,
): (endpoint: EndpointKey) => McpServer {
  const bounded = boundCalls(hooks)
  const reading = [
    listTool(hooks),
    getTool(hooks),
    providersTool(hooks),
    waitTool(hooks),
    statsTool(hooks),
    searchTool(hooks),
    healthTool(hooks),
  ]
  const replaying = [...reading, replayTool(hooks)]
  const recent = recentResource(hooks)
  const payload = payloadTemplate(hooks)
  const read = { name: 'resources/read', streams: false }

  function serverOf(endpoint: EndpointKey): McpServer {
    const tools = endpoint.may_replay ? replaying : reading
    return {
      name: 'gatehouse',
      title: 'Gatehouse webhooks',
      version,
      instructions: `${INSTRUCTIONS} ${UNTRUSTED}`,
      tools: tools.map((tool) => ({ ...tool, call: bounded(endpoint, tool) })),
      resources: [{ ...recent, read: bounded(endpoint, { ...read, call: recent.read }) }],
      templates: [{ ...payload, read: bounded(endpoint, { ...read, call: payload.read }) }],
      onFault: (tool, error) => hooks.log.error('tool failed', { tool, error: messageOf(error) }),
    }
  }

  // The registry gives the same key until it reads the keys again.
  const servers = new WeakMap<EndpointKey, McpServer>()
  return (endpoint) => servers.getOrInsertComputed(endpoint, serverOf)
}

/** What an endpoint calls: a tool, or the read of a resource. */
interface Callee<A extends unknown[], T> extends Pick<Tool, 'name' | 'streams'> {
  call: (...args: A) => Promise<T>
}

/** Bounds and counts the calls of one endpoint. */
function boundCalls({ endpoints, log, metrics }: ToolParts) {
  const calls = metrics.counter(
    'gatehouse_hooks_tool_calls',
    'Calls of tools, by tool and outcome.',
  )
  return <A extends unknown[], T>(
    endpoint: EndpointKey,
    { name: tool, streams, call }: Callee<A, T>,
  ) => {
    const succeeded = calls.series({ tool, outcome: 'ok' })
    const failed = calls.series({ tool, outcome: 'error' })
    const admit = () => endpoints.admit(endpoint, streams)
    const bounded = boundedCall({ log, tool, admit, tooMany: TOO_MANY_CALLS, codeOf }, call)
    return async (...args: A) => {
      let ended = failed
      try {
        const answer = await bounded(...args)
        ended = succeeded
        return answer
      } finally {
        ended()
      }
    }
  }
}

/** The code of a fault, of the closed set in decisions.md section 3, Tool protocol. */
function codeOf({ status }: Fault): string {
  if (status === 404) return 'not_found'
  return status === 503 ? 'rate_limited' : 'invalid_argument'
}

const INSTRUCTIONS =
  'Reads the webhooks that this Gatehouse has received and stored: list them, search their ' +
  'payloads, get one with its payload, wait for the next one, and see who may send, whether ' +
  'they can, and how much came.'
