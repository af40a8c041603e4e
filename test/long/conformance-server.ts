import { createBodyBudget } from '../../kernel/http/body.ts'
import { createHttpMetrics } from '../../kernel/http/request-log.ts'
import { systemClock } from '../../kernel/time.ts'
import { createGuard } from '../../kernel/net/guard.ts'
import { createListener } from '../../kernel/http/listener.ts'
import type { Members } from '../../kernel/mcp/json-rpc.ts'
import { postMcp } from '../../kernel/mcp/post.ts'
import type { McpServer, Prompt, Resource, ResourceTemplate } from '../../kernel/mcp/server.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { problem } from '../../kernel/http/reply.ts'
import { createRouter } from '../../kernel/http/router.ts'
import type { Owner } from '../helpers/owner.ts'
import { answered, elicit, inputTools } from './conformance-input-tools.ts'
import { plainTools, PNG } from './conformance-tools.ts'

const user = (content: Members & { type: string }) => ({ role: 'user', content }) as const
const say = (value: string) => user({ type: 'text', text: value })

function prompt(name: string, args: readonly string[], get: Prompt['get']): Prompt {
  const required = args.map((arg) => ({ name: arg, description: `Tests ${arg}`, required: true }))
  return { name, title: name, description: `Tests ${name}`, arguments: required, get }
}

const prompts: readonly Prompt[] = [
  prompt('test_simple_prompt', [], () => [say('This is a simple prompt for testing.')]),
  prompt('test_prompt_with_arguments', ['arg1', 'arg2'], ({ arg1, arg2 }) => [
    say(`Prompt with arguments: arg1='${String(arg1)}', arg2='${String(arg2)}'`),
  ]),
  prompt('test_prompt_with_embedded_resource', ['resourceUri'], ({ resourceUri }) => {
    const value = 'Embedded resource content for testing.'
    const resource = { uri: resourceUri, mimeType: 'text/plain', text: value }
    return [
      user({ type: 'resource', resource }),
      say('Please process the embedded resource above.'),
    ]
  }),
  prompt('test_prompt_with_image', [], () => [
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
    say('Please analyze the image above.'),
  ]),
  prompt('test_input_required_result_prompt', [], (_args, call) => {
    const context = answered(call, 'user_context')?.['context']
    return context === undefined
      ? { inputRequests: { user_context: elicit('What context?', 'context') } }
      : [say(`Prompt with context: ${String(context)}`)]
  }),
]

function resource(uri: string, mimeType: string, body: { text: string } | { blob: string }) {
  const shown = { uri, name: uri, title: uri, description: `Tests ${uri}`, mimeType }
  return { ...shown, read: async () => ({ uri, mimeType, ...body }) } satisfies Resource
}

const template: ResourceTemplate = {
  uriTemplate: 'test://template/{id}/data',
  name: 'template',
  title: 'Template',
  description: 'Tests a template',
  mimeType: 'application/json',
  async read(uri) {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
    if (id === undefined) return undefined
    const text = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
    return { uri, mimeType: 'application/json', text }
  },
}

/** What the conformance suite looks for, on the product's own core. */
const fixtures: McpServer = {
  name: 'gatehouse-fixtures',
  title: 'Fixtures of the conformance suite',
  version: '0.0.0',
  instructions: 'For tests only.',
  tools: [...plainTools, ...inputTools],
  prompts,
  resources: [
    resource('test://static-text', 'text/plain', {
      text: 'This is the content of the static text resource.',
    }),
    resource('test://static-binary', 'image/png', { blob: PNG }),
  ],
  templates: [template],
  complete: () => ['paris', 'park', 'party'],
  onFault: (what, error) => {
    throw new Error(`${what} threw`, { cause: error })
  },
}

/** Starts a listener of the product's kernel that serves the fixtures at `/mcp/fixtures`; gives the URL. */
export async function startFixtures(t: Owner): Promise<string> {
  const { signal } = new AbortController()
  const listener = createListener({
    service: 'fixtures',
    find: createRouter([
      {
        method: 'POST',
        path: '/mcp/fixtures',
        access: 'strict',
        async handle(context) {
          const reply = await postMcp(fixtures, context, { clock: systemClock, signal })
          return 'code' in reply ? problem(reply, context.path) : reply
        },
      },
    ]),
    noRoute: { status: 404, code: 'NOT_FOUND', detail: 'Nothing is here.' },
    faultReply: (fault, { path }) => problem(fault, path),
    guard: createGuard({
      ...{ hosts: [], trustedProxies: () => false },
      userHeader: () => 'remote-email',
    }),
    trustedProxies: () => false,
    bodyBudget: createBodyBudget(16 * 1024 * 1024),
    log: { info: ignore, warn: ignore, error: ignore, flush: ignore },
    metrics: createHttpMetrics(createMetrics()),
    clock: systemClock,
  })
  await listener.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listener.close(0))
  const address = listener.server.address()
  if (address === null || typeof address === 'string') throw new Error('the fixtures have no port')
  return `http://127.0.0.1:${address.port}/mcp/fixtures`
}

function ignore(): void {}
