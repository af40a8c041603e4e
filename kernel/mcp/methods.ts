import type { JsonObject } from '../json.ts'
import { failureOf, RPC, type RpcFailure } from './json-rpc.ts'
import { META, negotiate, SUPPORTED_VERSIONS, type Protocol } from './protocol-version.ts'
import {
  CallError,
  toolError,
  type Call,
  type McpServer,
  type Resource,
  type ResourceTemplate,
  type Tool,
} from './server.ts'

/** The end of a method. */
export type Outcome = Success | { failure: RpcFailure }

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
  const run = METHODS[protocol].get(method)
  if (run === undefined) {
    const message = `Method not found: ${method.slice(0, 100)}`
    return { failure: failureOf(RPC.methodNotFound, message, 404) }
  }
  try {
    return await run(server, params, call)
  } catch (error) {
    if (error instanceof CallError) return { failure: failureOf(RPC.internal, error.message, 503) }
    server.onFault(method, error)
    return { failure: failureOf(RPC.internal, 'Internal error.', 500) }
  }
}

const discover: Method = (server) => ({
  result: {
    supportedVersions: SUPPORTED_VERSIONS,
    capabilities: CAPABILITIES,
    instructions: server.instructions,
  },
  freshMs: LISTS_FRESH_MS,
})

const initialize: Method = (server, params) => ({
  result: {
    protocolVersion: negotiate(params['protocolVersion']),
    capabilities: CAPABILITIES,
    serverInfo: serverInfo(server),
    instructions: server.instructions,
  },
})

/** Every list is one page: no cursor is ever given out. */
function list(member: string, itemsOf: (server: McpServer) => readonly JsonObject[]): Method {
  return (server, params) =>
    params['cursor'] === undefined
      ? { result: { [member]: itemsOf(server) }, freshMs: LISTS_FRESH_MS }
      : invalidParams('invalid cursor')
}

/** The tool that a request calls. */
export function calledTool(server: McpServer, params: JsonObject): Tool | undefined {
  return server.tools.find((tool) => tool.name === params['name'])
}

const callTool: Method = async (server, params, call) => {
  const tool = calledTool(server, params)
  if (tool === undefined) return invalidParams('There is no tool under this name.')
  try {
    return { result: {}, shared: await tool.call(params['arguments'] ?? {}, call) }
  } catch (error) {
    if (error instanceof CallError) {
      return { result: {}, shared: toolError(error.code, error.message) }
    }
    server.onFault(tool.name, error)
    const shared = toolError('internal', 'The tool failed; try again later.')
    return { result: {}, shared }
  }
}

const readResource: Method = async (server, params) => {
  const { uri } = params
  if (typeof uri !== 'string') return invalidParams('uri must be a string.')
  const contents = await readerOf(server, uri)?.()
  return contents === undefined
    ? invalidParams('There is no resource under this URI.', { uri })
    : { result: { contents }, freshMs: 0 }
}

/** What reads the resource of a URI; undefined where no resource can have it. */
function readerOf({ resources, templates }: McpServer, uri: string) {
  const listed = resources.find((candidate) => candidate.uri === uri)
  if (listed !== undefined) return listed.read
  for (const { uriTemplate, read } of templates) {
    const params = paramsOf(uriTemplate, uri)
    if (params !== undefined) return () => read(uri, params)
  }
  return undefined
}

/** The values of a template's parameters in a URI; undefined for a URI of another form. */
function paramsOf(template: string, uri: string): Record<string, string> | undefined {
  const given = uri.split('/')
  const wanted = template.split('/')
  if (given.length !== wanted.length) return undefined
  const params: Record<string, string> = {}
  for (const [at, segment] of wanted.entries()) {
    const value = given[at] ?? ''
    if (segment.startsWith('{')) params[segment.slice(1, -1)] = value
    else if (value !== segment) return undefined
  }
  return params
}

/** A method's result. `freshMs` is how long a client may keep it. */
interface Success {
  result: JsonObject
  freshMs?: number
  /** Further members of the result, as JSON without braces. */
  shared?: Uint8Array
}

/** The server's name and version: part of every stateless result. */
function serverInfo({ name, title, version }: McpServer): JsonObject {
  return { name, title, version }
}

/** What a server offers. Its lists never change, so nothing can be subscribed to. */
const CAPABILITIES = { tools: {}, resources: {} }

function invalidParams(message: string, data?: unknown): Outcome {
  return { failure: failureOf(RPC.invalidParams, message, 200, data) }
}

function describeTool({ streams: _streams, call: _call, ...shown }: Tool): JsonObject {
  return shown
}

function describeResource({ read: _read, ...shown }: Resource | ResourceTemplate): JsonObject {
  return shown
}

const METHODS_OF_BOTH: readonly (readonly [string, Method])[] = [
  ['tools/list', list('tools', ({ tools }) => tools.map(describeTool))],
  ['tools/call', callTool],
  ['resources/list', list('resources', ({ resources }) => resources.map(describeResource))],
  [
    'resources/templates/list',
    list('resourceTemplates', ({ templates }) => templates.map(describeResource)),
  ],
  ['resources/read', readResource],
]

const METHODS: Readonly<Record<Protocol, ReadonlyMap<string, Method>>> = {
  stateless: new Map([...METHODS_OF_BOTH, ['server/discover', discover]]),
  handshake: new Map([
    ...METHODS_OF_BOTH,
    ['initialize', initialize],
    ['ping', () => ({ result: {} })],
  ]),
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
