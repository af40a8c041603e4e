import type { JsonObject } from '../json.ts'
import { invalidParams, RPC, type RpcFailure } from './json-rpc.ts'
import { META, negotiate, SUPPORTED_VERSIONS, type Protocol } from './protocol-version.ts'
import {
  toolError,
  TryLater,
  type Call,
  type McpServer,
  type Resource,
  type Tool,
} from './server.ts'

/** The end of a method. */
export type Outcome = Success | { readonly failure: RpcFailure }

type Method = (server: McpServer, params: JsonObject, call: Call) => Outcome | Promise<Outcome>

/** Lists change with a release only, or with what the endpoint may do. */
const LISTS_FRESH_MS = 300_000

/**
 * Runs a method. An unexpected error goes to the server's `onFault`; the client learns nothing of
 * it.
 */
export async function runMethod(
  server: McpServer,
  protocol: Protocol,
  method: string,
  params: JsonObject,
  call: Call,
): Promise<Outcome> {
  const run = methodOf(server, protocol, method)
  if (run === undefined) {
    const message = `Method not found: ${method.slice(0, 100)}`
    return { failure: { code: RPC.methodNotFound, message, status: 404 } }
  }
  try {
    return await run(server, params, call)
  } catch (error) {
    if (error instanceof TryLater) {
      return { failure: { code: RPC.internal, message: error.message, status: 503 } }
    }
    server.onFault(method, error)
    return { failure: { code: RPC.internal, message: 'Internal error.', status: 500 } }
  }
}

/** A method exists only where the server offers what it is about. */
function methodOf(server: McpServer, protocol: Protocol, method: string): Method | undefined {
  const { resources } = server
  switch (method) {
    case 'server/discover':
      return protocol === 'stateless' ? discover : undefined
    case 'initialize':
      return protocol === 'handshake' ? initialize : undefined
    case 'ping':
      return protocol === 'handshake' ? () => ({ result: {} }) : undefined
    case 'tools/list':
      return list('tools', server.tools.map(describeTool))
    case 'tools/call':
      return callTool
    case 'resources/list':
      return resources && list('resources', resources.map(describeResource))
    case 'resources/templates/list':
      return resources && list('resourceTemplates', [])
    case 'resources/read':
      return resources && readResource
    default:
      return undefined
  }
}

const discover: Method = (server) => {
  const { instructions } = server
  return {
    result: {
      supportedVersions: SUPPORTED_VERSIONS,
      capabilities: capabilities(server),
      instructions,
    },
    freshMs: LISTS_FRESH_MS,
  }
}

const initialize: Method = (server, params) => ({
  result: {
    protocolVersion: negotiate(params['protocolVersion']),
    capabilities: capabilities(server),
    serverInfo: serverInfo(server),
    instructions: server.instructions,
  },
})

/** Every list is one page: no cursor is ever given out. */
function list(member: string, items: readonly JsonObject[]): Method {
  return (_server, params) =>
    params['cursor'] === undefined
      ? { result: { [member]: items }, freshMs: LISTS_FRESH_MS }
      : { failure: invalidParams('invalid cursor') }
}

/** The tool that a request calls. */
export function calledTool(server: McpServer, params: JsonObject): Tool | undefined {
  return server.tools.find((tool) => tool.name === params['name'])
}

const callTool: Method = async (server, params, call) => {
  const tool = calledTool(server, params)
  if (tool === undefined) return { failure: invalidParams('There is no tool under this name.') }
  try {
    const answer = await tool.call(params['arguments'] ?? {}, call)
    return { result: {}, shared: answer.members }
  } catch (error) {
    server.onFault(tool.name, error)
    const { members } = toolError('internal', 'The tool failed; try again later.')
    return { result: {}, shared: members }
  }
}

const readResource: Method = async ({ resources = [] }, params) => {
  const { uri } = params
  if (typeof uri !== 'string') return { failure: invalidParams('uri must be a string.') }
  const contents = await resources.find((candidate) => candidate.uri === uri)?.read()
  return contents === undefined
    ? { failure: invalidParams('There is no resource under this URI.', { uri }) }
    : { result: { contents: [contents] }, freshMs: 0 }
}

/** A method's result. `freshMs` is how long a client may keep it. */
interface Success {
  readonly result: JsonObject
  readonly freshMs?: number
  /** Further members of the result, as JSON without braces. */
  readonly shared?: Uint8Array
}

/** The server's name and version: part of every stateless result. */
function serverInfo({ name, title, version }: McpServer): JsonObject {
  return { name, title, version }
}

/** What the server offers. Its lists never change, so nothing can be subscribed to. */
function capabilities({ resources }: McpServer): JsonObject {
  return { tools: {}, ...(resources && { resources: {} }) }
}

function describeTool(tool: Tool): JsonObject {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  return { name, title, description, inputSchema, outputSchema, annotations }
}

function describeResource({ uri, name, title, description, mimeType }: Resource): JsonObject {
  return { uri, name, title, description, mimeType }
}

/**
 * A result as its protocol writes it. A stateless one names its kind, its server, and how long it
 * holds.
 */
export function toResult(
  server: McpServer,
  protocol: Protocol,
  { result, freshMs }: Success,
): JsonObject {
  if (protocol === 'handshake') return result
  return {
    resultType: 'complete',
    ...result,
    ...(freshMs !== undefined && { ttlMs: freshMs, cacheScope: 'private' }),
    _meta: { [META.serverInfo]: serverInfo(server) },
  }
}
