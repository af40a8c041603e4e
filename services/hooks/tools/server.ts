import Type from 'typebox'
import type { EndpointKey } from '../../../db/hooks/endpoints.ts'
import { Fault, Unavailable } from '../../../kernel/fault.ts'
import { messageOf } from '../../../kernel/log.ts'
import {
  defineTool,
  toolError,
  toolValue,
  TryLater,
  type McpServer,
  type Resource,
  type Tool,
} from '../../../kernel/mcp/server.ts'
import { ProviderStatus, providerStatus, readProviders } from '../providers.ts'
import {
  getTool,
  listTool,
  READ_ONLY,
  recentResource,
  replayTool,
  UNTRUSTED,
  waitTool,
} from './events.ts'
import type { Hooks } from '../open.ts'

/** What each endpoint of the hooks service offers (decisions.md section 3, Tool protocol). */
export function createToolServers(
  hooks: Hooks,
  version: string,
): (endpoint: EndpointKey) => McpServer {
  const { log, metrics } = hooks
  const admit = createCallLimit()
  const calls = metrics.counter(
    'gatehouse_hooks_tool_calls',
    'Calls of tools, by tool and outcome.',
  )
  const reading = [listTool(hooks), getTool(hooks), providersTool(hooks), waitTool(hooks)]
  const replaying = [replayTool(hooks)]
  const resources = [recentResource(hooks)]

  /** Work of one endpoint: bounded, counted, and with a failure for every expected error. */
  function bounded<A extends unknown[], T extends object>(
    { name: endpoint }: EndpointKey,
    tool: string,
    waits: boolean,
    work: (...args: A) => Promise<T>,
    refuse: (code: FailureCode, message: string) => T,
  ): (...args: A) => Promise<T> {
    const ended = {
      ok: calls.series({ tool, outcome: 'ok' }),
      error: calls.series({ tool, outcome: 'error' }),
    }
    return async (...args) => {
      let outcome: 'ok' | 'error' = 'error'
      const leave = admit(endpoint, waits)
      try {
        if (leave === undefined) return refuse('rate_limited', TOO_MANY)
        const answer = await work(...args)
        if (!('isError' in answer)) outcome = 'ok'
        return answer
      } catch (error) {
        if (error instanceof Fault) return refuse(codeOf(error), error.message)
        if (!(error instanceof Unavailable)) throw error
        log.warn('unavailable', { tool, error: messageOf(error) })
        return refuse('internal', 'The database is out of reach; try again shortly.')
      } finally {
        leave?.()
        ended[outcome]()
      }
    }
  }

  function toolFor(endpoint: EndpointKey, tool: Tool): Tool {
    const { name, streams } = tool
    return { ...tool, call: bounded(endpoint, name, streams, tool.call, toolError) }
  }

  function resourceFor(endpoint: EndpointKey, resource: Resource): Resource {
    function refuse(_code: FailureCode, message: string): never {
      throw new TryLater(message)
    }
    return { ...resource, read: bounded(endpoint, 'resources/read', false, resource.read, refuse) }
  }

  function serverOf(endpoint: EndpointKey): McpServer {
    const tools = [...reading, ...(endpoint.may_replay ? replaying : [])]
    return {
      name: 'gatehouse',
      title: 'Gatehouse webhooks',
      version,
      instructions: `${INSTRUCTIONS} ${UNTRUSTED}`,
      tools: tools.map((tool) => toolFor(endpoint, tool)),
      resources: resources.map((resource) => resourceFor(endpoint, resource)),
      onFault: (what, error) => log.error('tool failed', { tool: what, error: messageOf(error) }),
    }
  }

  // The registry gives the same key until it reads the keys again.
  const servers = new WeakMap<EndpointKey, McpServer>()
  return (endpoint) => {
    const server = servers.get(endpoint) ?? serverOf(endpoint)
    servers.set(endpoint, server)
    return server
  }
}

/** Why a tool failed: a closed set of codes (decisions.md section 3, Tool protocol). */
type FailureCode = 'not_found' | 'invalid_argument' | 'replay_failed' | 'rate_limited' | 'internal'

function codeOf({ status }: Fault): FailureCode {
  if (status === 404) return 'not_found'
  return status === 503 ? 'rate_limited' : 'invalid_argument'
}

const INSTRUCTIONS =
  'Reads the webhooks that this Gatehouse has received and stored: list them, get one with its ' +
  'payload, wait for the next one, and see who may send.'

const TOO_MANY = 'This endpoint has as many calls running as it may; wait for one to end.'

/** Calls of one endpoint that run at a time, and how many of them may be calls that wait. */
const MAX_CALLS = 32
const MAX_WAITS = 8

/**
 * Counts the running calls of each endpoint. Returns a function that admits a call: it returns what
 * ends the call, or undefined when too many are running.
 */
function createCallLimit(): (endpoint: string, waits: boolean) => (() => void) | undefined {
  const running = new Map<string, { calls: number; waits: number }>()
  return (endpoint, waits) => {
    const count = running.get(endpoint) ?? { calls: 0, waits: 0 }
    if (count.calls >= MAX_CALLS || (waits && count.waits >= MAX_WAITS)) return undefined
    running.set(endpoint, count)
    count.calls++
    if (waits) count.waits++
    return () => {
      count.calls--
      if (waits) count.waits--
      if (count.calls === 0) running.delete(endpoint)
    }
  }
}

/** `list_providers`: who may send, and whether they can. */
function providersTool({ db, clock, secrets }: Hooks): Tool {
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
