import { setTimeout as pause } from 'node:timers/promises'
import type { JsonObject } from '../../kernel/json.ts'
import {
  CallError,
  defineTool,
  type Call,
  type Tool,
  type ToolResult,
} from '../../kernel/mcp/server.ts'

/** One red pixel, and a sound without samples: the smallest files of their kinds. */
export const PNG =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

type Answer = (call: Call) => ToolResult | Promise<ToolResult>

/** A tool without arguments, by the name that the conformance suite calls. */
function fixture(name: string, description: string, answer: Answer, streams = false): Tool {
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
type Content = JsonObject & { readonly type: string }

function toolContent(...content: readonly Content[]): ToolResult {
  return Buffer.from(`"content":${JSON.stringify(content)}`)
}

function text(value: string): ToolResult {
  return toolContent({ type: 'text', text: value })
}

const image: Content = { type: 'image', data: PNG, mimeType: 'image/png' }

function embedded(uri: string, mimeType: string, value: string): Content {
  return { type: 'resource', resource: { uri, mimeType, text: value } }
}

async function withProgress(call: Call): Promise<ToolResult> {
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
export const fixtureTools: readonly Tool[] = [
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
