import { notFound } from '../../kernel/fault.ts'
import { createBodyBudget } from '../../kernel/http/body.ts'
import { createHttpMetrics } from '../../kernel/http/request-log.ts'
import { createWaitingRequests } from '../../kernel/http/waiting.ts'
import { systemClock } from '../../kernel/time.ts'
import { createGuard } from '../../kernel/net/guard.ts'
import { createListener } from '../../kernel/http/listener.ts'
import { postMcp } from '../../kernel/mcp/post.ts'
import type { McpServer, Resource } from '../../kernel/mcp/server.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { problem } from '../../kernel/http/reply.ts'
import { createRouter } from '../../kernel/http/router.ts'
import type { Owner } from '../helpers/owner.ts'
import { fixtureTools, PNG } from './conformance-tools.ts'

function resource(uri: string, mimeType: string, body: { text: string } | { blob: string }) {
  const described = { uri, name: uri, title: uri, description: `Tests ${uri}`, mimeType }
  return { ...described, read: async () => [{ uri, mimeType, ...body }] } satisfies Resource
}

/** What the conformance suite looks for, on the product's own core. */
const fixtures: McpServer = {
  name: 'gatehouse-fixtures',
  title: 'Fixtures of the conformance suite',
  version: '0.0.0',
  instructions: 'For tests only.',
  tools: fixtureTools,
  resources: [
    resource('test://static-text', 'text/plain', {
      text: 'This is the content of the static text resource.',
    }),
    resource('test://static-binary', 'image/png', { blob: PNG }),
  ],
  templates: [
    {
      uriTemplate: 'test://template/{id}/data',
      name: 'template',
      title: 'Template',
      description: 'Tests a template of resources',
      read: async (uri, { id }) => [
        { uri, mimeType: 'application/json', text: JSON.stringify({ id }) },
      ],
    },
  ],
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
        handle: (context) => postMcp(fixtures, context, { clock: systemClock, signal }),
      },
    ]),
    noRoute: notFound('Nothing is here.'),
    faultReply: (fault, { path }) => problem(fault, path),
    guard: createGuard({
      ...{ hosts: () => new Set(), trustedProxies: () => false },
      userHeader: () => 'remote-email',
      groupsHeader: () => undefined,
    }),
    trustedProxies: () => false,
    identify: () => ({ kind: 'anonymous' }),
    bodyBudget: createBodyBudget(16 * 1024 * 1024),
    log: { info: ignore, warn: ignore, error: ignore, flush: ignore },
    metrics: createHttpMetrics(createMetrics()),
    waiting: createWaitingRequests(createMetrics(), {
      info: ignore,
      warn: ignore,
      error: ignore,
      flush: ignore,
    }),
    maxConnections: 1_000,
    clock: systemClock,
  })
  await listener.listen({ host: '127.0.0.1', port: 0 })
  t.teardown(() => listener.close(0))
  const address = listener.server.address()
  if (address === null || typeof address === 'string') throw new Error('the fixtures have no port')
  return `http://127.0.0.1:${address.port}/mcp/fixtures`
}

function ignore(): void {}
