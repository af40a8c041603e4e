import type { EndpointKey } from '../../../db/hooks/rows.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import type { McpServer, Tool } from '../../../kernel/mcp/server.ts'
import { getTool, listTool, recentResource } from './events.ts'
import { createLimits } from './limits.ts'
import { failure, UNTRUSTED, type ToolOptions } from './options.ts'
import { providersTool } from './providers.ts'
import { replayTool } from './replay.ts'
import { waitTool } from './wait.ts'

/** What each endpoint of the hooks service offers (decisions.md section 3, Tool protocol). */
export function createToolServers(options: ToolOptions): (endpoint: EndpointKey) => McpServer {
  const { version, replay, log, metrics } = options
  const limits = createLimits()
  const calls = metrics.counter(
    'gatehouse_hooks_tool_calls',
    'Calls of tools, by tool and outcome.',
  )
  const reading = [listTool(options), getTool(options), providersTool(options), waitTool(options)]
  const replaying = [replayTool(replay)]
  const resources = [recentResource(options)]

  /** A tool as one endpoint may call it: within bounds, and without a database it says so. */
  function bounded(tool: Tool, endpoint: string): Tool {
    const ended = {
      ok: calls.series({ tool: tool.name, outcome: 'ok' }),
      error: calls.series({ tool: tool.name, outcome: 'error' }),
    }
    async function call(...[args, call]: Parameters<Tool['call']>): ReturnType<Tool['call']> {
      let outcome: keyof typeof ended = 'error'
      const leave = limits.enter(endpoint, tool.streams)
      try {
        if (leave === undefined) return failure('rate_limited', TOO_MANY)
        const answer = await tool.call(args, call)
        if (!('isError' in answer)) outcome = 'ok'
        return answer
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error
        log.warn('unavailable', { tool: tool.name, error: messageOf(error) })
        return failure('internal', 'The database is out of reach; try again shortly.')
      } finally {
        leave?.()
        ended[outcome]()
      }
    }
    return { ...tool, call }
  }

  function serverOf({ name, may_replay }: EndpointKey): McpServer {
    return {
      name: 'gatehouse',
      title: 'Gatehouse webhooks',
      version,
      instructions: `${INSTRUCTIONS} ${UNTRUSTED}`,
      tools: [...reading, ...(may_replay ? replaying : [])].map((tool) => bounded(tool, name)),
      resources,
      onFault: (what, error) => log.error('tool failed', { tool: what, error: messageOf(error) }),
    }
  }

  // The registry gives the same key until it reads all of them again.
  const servers = new WeakMap<EndpointKey, McpServer>()
  return (endpoint) => {
    const server = servers.get(endpoint) ?? serverOf(endpoint)
    servers.set(endpoint, server)
    return server
  }
}

const INSTRUCTIONS =
  'Reads the webhooks that this Gatehouse has received and stored: list them, get one with its ' +
  'payload, wait for the next one, and see who may send.'

const TOO_MANY = 'This endpoint has as many calls running as it may; wait for one to end.'
