import { notFound } from '../../kernel/fault.ts'
import { createBodyBudget } from '../../kernel/http/body.ts'
import { createHttpMetrics } from '../../kernel/http/request-log.ts'
import { createWaitingRequests } from '../../kernel/http/waiting.ts'
import { systemClock } from '../../kernel/time.ts'
import { createGuard } from '../../kernel/net/guard.ts'
import { createListener } from '../../kernel/http/listener.ts'
import { postMcp } from '../../kernel/mcp/post.ts'
import { createMetrics } from '../../kernel/metrics.ts'
import { problem } from '../../kernel/http/reply.ts'
import { createRouter } from '../../kernel/http/router.ts'
import type { Owner } from '../helpers/owner.ts'
import { setTimeout as pause } from 'node:timers/promises'
import type { JsonObject } from '../../kernel/json.ts'
import {
  CallError,
  defineTool,
  type Call,
  type McpServer,
  type Resource,
  type Tool,
  type ToolResult,
} from '../../kernel/mcp/server.ts'

/** One red pixel, and a sound without samples: the smallest files of their kinds. */
const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

type Answer = (call: Call) => ToolResult | Promise<ToolResult>

/** A tool without arguments, by the name that the conformance suite calls. */
function fixture(name: string, description: string, answer: Answer, streams = false) {
  return defineTool({
    name,
    title: name,
    description,
    input: {},
    annotations: {
      readOnlyHint: true,
      destructiveHint: false,
      idempotentHint: true,
      openWorldHint: false,
    },
    ...(streams && { streams }),
    call: async (_args, call) => answer(call),
  })
}

/** One block of a result, as MCP writes it. */
type Content = JsonObject & { type: string }

function toolContent(...content: Content[]) {
  return Buffer.from(`"content":${JSON.stringify(content)}`)
}

function text(value: string) {
  return toolContent({ type: 'text', text: value })
}

const image: Content = { type: 'image', data: PNG, mimeType: 'image/png' }

function embedded(uri: string, mimeType: string, value: string) {
  return { type: 'resource', resource: { uri, mimeType, text: value } }
}

async function withProgress(call: Call) {
  for (const done of [0, 50, 100]) {
    call.progress(done, 100, `Completed step ${done} of 100`)
    await pause(10)
  }
  return text('Work is done')
}

/** As `json-schema-2020-12` reads it back: the schema must come out as it went in. */
const SCHEMA: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

/** Tools that answer at once or in a stream. */
const fixtureTools: readonly Tool[] = [
  fixture('test_simple_text', 'Tests text', () =>
    text('This is a simple text response for testing.'),
  ),
  fixture('test_image_content', 'Tests an image', () => toolContent(image)),
  fixture('test_audio_content', 'Tests a sound', () =>
    toolContent({ type: 'audio', data: WAV, mimeType: 'audio/wav' }),
  ),
  fixture('test_embedded_resource', 'Tests an embedded resource', () =>
    toolContent(
      embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
    ),
  ),
  fixture('test_multiple_content_types', 'Tests several blocks', () =>
    toolContent(
      { type: 'text', text: 'Multiple content types test:' },
      image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ),
  ),
  fixture('test_error_handling', 'Tests an error', () => {
    throw new CallError('test', 'This tool intentionally returns an error for testing')
  }),
  fixture('test_tool_with_progress', 'Tests progress', withProgress, true),
  fixture('test_streaming_elicitation', 'Tests a response stream', withProgress, true),
  fixture('test_logging_tool', 'Logs nothing', () => text('Nothing was logged'), true),
  {
    ...fixture('json_schema_2020_12_tool', 'Shows a schema', () => text('ok')),
    inputSchema: SCHEMA,
  },
]

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
export async function startFixtures(t: Owner) {
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
      hosts: () => new Set(),
      trustedProxies: () => false,
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

function ignore() {}
