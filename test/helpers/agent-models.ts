import { zstdDecompressSync } from 'node:zlib'
import type { ServerResponse } from 'node:http'
import type { Owner } from './owner.ts'
import { startReceiver } from './replays.ts'

/** What the model of a headless agent does: it calls this tool once, and then answers. */
export type Script = {
  readonly tool: string
  readonly args: object
  /** Stands in what the tool returns. */
  readonly returns: string
  readonly answer: string
}

/** A turn: a call of a tool, or the answer. */
type Turn = { readonly args: object } | { readonly text: string }

/** A protocol: its path, its name for our tool, and a turn as the events of its stream. */
type Protocol = {
  readonly path: RegExp
  name(tool: string): string
  events(turn: Turn, name: string): readonly object[]
}

/** Anthropic's messages, as claude asks for them. */
const MESSAGES: Protocol = {
  path: /\/v1\/messages/,
  name: (tool) => `mcp__gatehouse__${tool}`,
  events(turn, name) {
    const isCall = 'args' in turn
    const usage = { input_tokens: 10, output_tokens: 5 }
    const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [] }
    const block = isCall
      ? { type: 'tool_use', id: 'toolu_1', name, input: {} }
      : { type: 'text', text: '' }
    const delta = isCall
      ? { type: 'input_json_delta', partial_json: JSON.stringify(turn.args) }
      : { type: 'text_delta', text: turn.text }
    const stop_reason = isCall ? 'tool_use' : 'end_turn'
    return [
      { type: 'message_start', message: { ...message, stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: block },
      { type: 'content_block_delta', index: 0, delta },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage },
      { type: 'message_stop' },
    ]
  },
}

/** OpenAI's responses, as codex asks for them: a tool of a server has a namespace. */
const RESPONSES: Protocol = {
  path: /\/v1\/responses/,
  name: (tool) => tool,
  events(turn, name) {
    const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name }
    const content = 'text' in turn ? [{ type: 'output_text', text: turn.text }] : []
    const item =
      'args' in turn
        ? { ...call, namespace: 'mcp__gatehouse', arguments: JSON.stringify(turn.args) }
        : { type: 'message', role: 'assistant', id: 'msg_1', content }
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 }
    return [
      { type: 'response.created', response: { id: 'resp_1' } },
      { type: 'response.output_item.done', item },
      { type: 'response.completed', response: { id: 'resp_1', usage } },
    ]
  },
}

/** OpenAI's chat completions, as opencode asks for them. */
const COMPLETIONS: Protocol = {
  path: /\/chat\/completions/,
  name: (tool) => `gatehouse_${tool}`,
  events(turn, name) {
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const delta =
      'args' in turn ? { tool_calls: [callOf(name, turn.args)] } : { content: turn.text }
    const finish_reason = 'args' in turn ? 'tool_calls' : 'stop'
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
    return [
      { ...head, choices: [{ index: 0, delta: { role: 'assistant', ...delta } }] },
      { ...head, choices: [{ index: 0, delta: {}, finish_reason }], usage },
    ]
  },
}

function callOf(name: string, args: object): object {
  const call = { name, arguments: JSON.stringify(args) }
  return { index: 0, id: 'call_1', type: 'function', function: call }
}

/** Gemini's API. */
const GEMINI: Protocol = {
  path: /:streamGenerateContent/,
  name: (tool) => `mcp_gatehouse_${tool}`,
  events(turn, name) {
    const part = 'args' in turn ? { functionCall: { name, args: turn.args } } : turn
    const content = { role: 'model', parts: [part] }
    const usage = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }
    return [{ candidates: [{ content, finishReason: 'STOP', index: 0 }], usageMetadata: usage }]
  },
}

const PROTOCOLS = [MESSAGES, RESPONSES, COMPLETIONS, GEMINI]

/** Serves the model of a real agent, whichever of the four protocols it speaks; gives its URL. */
export async function startAgentModel(t: Owner, script: Script): Promise<string> {
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    const isPacked = headers['content-encoding'] === 'zstd'
    const text = (isPacked ? zstdDecompressSync(body) : body).toString('utf8')
    reply(response, path, text, script)
  })
  return url
}

function reply(response: ServerResponse, path: string, body: string, script: Script): void {
  const protocol = PROTOCOLS.find((one) => one.path.test(path))
  if (protocol === undefined) return void response.writeHead(404).end('{}')
  // Codex asks for a WebSocket first.
  if (body === '') return void response.writeHead(426).end()
  const name = protocol.name(script.tool)
  // Also a title is asked for, without our tools. Codex looks for their names by itself.
  const isOffered = protocol === RESPONSES || body.includes(JSON.stringify(name))
  const isDone = body.includes(script.returns)
  const turn = isOffered && !isDone ? { args: script.args } : { text: script.answer }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of protocol.events(turn, name)) {
    const type = 'type' in event ? `event: ${String(event.type)}\n` : ''
    response.write(`${type}data: ${JSON.stringify(event)}\n\n`)
  }
  response.end(protocol === COMPLETIONS ? 'data: [DONE]\n\n' : '')
}
