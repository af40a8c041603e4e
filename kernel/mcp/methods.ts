import { capabilitiesOf, negotiate, SUPPORTED_VERSIONS, type Era } from './era.ts'
import { invalidParams, isObject, RPC, type Members, type RpcFailure } from './json-rpc.ts'
import {
  BadRequest,
  TryLater,
  type Call,
  type InputRequired,
  type McpServer,
  type Tool,
} from './server.ts'
import {
  capabilities,
  serverInfo,
  shownPrompt,
  shownResource,
  shownTemplate,
  shownTool,
  type Success,
} from './shown.ts'
import { toolError } from './tool.ts'

/** What a method comes to. */
export type Outcome = Success | { readonly failure: RpcFailure }

type Method = (server: McpServer, params: Members, call: Call) => Outcome | Promise<Outcome>

/** Lists change with a release only, or with what the endpoint may do. */
const LISTS_FRESH_MS = 300_000

/** Runs a method of an era; whatever it throws is told to the server and hidden from the client. */
export async function runMethod(
  server: McpServer,
  era: Era,
  method: string,
  params: Members,
  call: Call,
): Promise<Outcome> {
  const run = methodOf(server, era, method)
  if (run === undefined) {
    const message = `Method not found: ${method.slice(0, 100)}`
    return { failure: { code: RPC.methodNotFound, message, status: 404 } }
  }
  try {
    return await run(server, params, call)
  } catch (error) {
    if (error instanceof BadRequest) return { failure: invalidParams(error.message) }
    if (error instanceof TryLater) {
      return { failure: { code: RPC.internal, message: error.message, status: 503 } }
    }
    server.onFault(method, error)
    return { failure: { code: RPC.internal, message: 'Internal error.', status: 500 } }
  }
}

/** A method is there only when the server offers what it is about. */
function methodOf(server: McpServer, era: Era, method: string): Method | undefined {
  const { prompts, resources, complete } = server
  switch (method) {
    case 'server/discover':
      return era === 'modern' ? discover : undefined
    case 'initialize':
      return era === 'legacy' ? initialize : undefined
    case 'ping':
      return era === 'legacy' ? () => ({ result: {} }) : undefined
    case 'tools/list':
      return list('tools', server.tools.map(shownTool))
    case 'tools/call':
      return callTool
    case 'prompts/list':
      return prompts && list('prompts', prompts.map(shownPrompt))
    case 'prompts/get':
      return prompts && getPrompt
    case 'resources/list':
      return resources && list('resources', resources.map(shownResource))
    case 'resources/templates/list':
      return resources && list('resourceTemplates', (server.templates ?? []).map(shownTemplate))
    case 'resources/read':
      return resources && readResource
    case 'completion/complete':
      return complete && completeArgument
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

/** Every list is one page, so no cursor is ever given out and none is ours. */
function list(member: string, items: readonly Members[]): Method {
  return (_server, params) =>
    params['cursor'] === undefined
      ? { result: { [member]: items }, freshMs: LISTS_FRESH_MS }
      : { failure: invalidParams('cursor is none of this list.') }
}

/** The tool that a request calls, when there is one under that name. */
export function calledTool(server: McpServer, params: Members): Tool | undefined {
  return server.tools.find((tool) => tool.name === params['name'])
}

const callTool: Method = async (server, params, call) => {
  const tool = calledTool(server, params)
  if (tool === undefined) return { failure: invalidParams('There is no tool under this name.') }
  try {
    const answer = await tool.call(params['arguments'] ?? {}, call)
    if ('inputRequests' in answer) return askClient(answer, params)
    return { result: {}, shared: answer.members }
  } catch (error) {
    if (error instanceof BadRequest) throw error
    server.onFault(tool.name, error)
    const { members } = toolError('internal', 'The tool failed; try again later.')
    return { result: {}, shared: members }
  }
}

const getPrompt: Method = ({ prompts = [] }, params, call) => {
  const prompt = prompts.find(({ name }) => name === params['name'])
  if (prompt === undefined) return { failure: invalidParams('There is no prompt under this name.') }
  const args = isObject(params['arguments']) ? params['arguments'] : {}
  const missing = prompt.arguments.find(({ name, required }) => required && !(name in args))
  if (missing !== undefined) return { failure: invalidParams(`${missing.name} is missing.`) }
  const answer = prompt.get(args, call)
  if ('inputRequests' in answer) return askClient(answer, params)
  return { result: { description: prompt.description, messages: answer } }
}

const readResource: Method = async ({ resources = [], templates = [] }, params) => {
  const { uri } = params
  if (typeof uri !== 'string') return { failure: invalidParams('uri must be a string.') }
  const resource = resources.find((candidate) => candidate.uri === uri)
  let contents = await resource?.read()
  for (const template of templates) contents ??= await template.read(uri)
  return contents === undefined
    ? { failure: invalidParams('There is no resource under this URI.', { uri }) }
    : { result: { contents: [contents] }, freshMs: 0 }
}

const completeArgument: Method = ({ complete }, params) => {
  const { ref, argument } = params
  if (!isObject(ref) || !isObject(argument))
    return { failure: invalidParams('ref and argument must be objects.') }
  const values = complete?.(ref, argument) ?? []
  return {
    result: {
      completion: {
        values: values.slice(0, 100),
        total: values.length,
        hasMore: values.length > 100,
      },
    },
  }
}

/** The capability that a request to the client takes. */
const NEEDED: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
}

/** A client is asked only for what it said it can do. */
function askClient(answer: InputRequired, params: Members): Outcome {
  const declared = capabilitiesOf(params)
  const needed = Object.values(answer.inputRequests).map(({ method }) => NEEDED[method] ?? method)
  const missing = needed.filter((capability) => !isObject(declared[capability]))
  if (missing.length === 0) return { result: { resultType: 'input_required', ...answer } }
  const requiredCapabilities = Object.fromEntries(missing.map((name) => [name, {}]))
  const message = 'This needs a capability that the client did not declare.'
  const code = RPC.missingCapability
  return { failure: { code, message, status: 400, data: { requiredCapabilities } } }
}
