import { mkdirSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { zstdDecompressSync } from 'node:zlib'
import { t } from 'tap'
import { findProgram } from '../../kernel/processes/find-program.ts'
import { postgres } from '../helpers/backends.ts'
import { request } from '../helpers/http.ts'
import { ended, eventsOfSession, startOps, trigger } from '../helpers/ops.ts'
import { temporaryFolder, type Owner } from '../helpers/owner.ts'
import { startReceiver } from '../helpers/replays.ts'

/** What the model of a headless agent does: it calls this tool once, and then answers. */
type Script = {
  tool: string
  args: object
  /** Stands in what the tool returns. */
  returns: string
  answer: string
}

/** A turn: a call of a tool, or the answer. */
type Turn = { args: object } | { text: string }

/** A protocol: its path, its name for our tool, and a turn as the events of its stream. */
type Protocol = {
  path: RegExp
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

function callOf(name: string, args: object) {
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
async function startAgentModel(t: Owner, script: Script) {
  const { url } = await startReceiver(t, ({ path, headers, body }, response) => {
    const isPacked = headers['content-encoding'] === 'zstd'
    const text = (isPacked ? zstdDecompressSync(body) : body).toString('utf8')
    reply(response, path, text, script)
  })
  return url
}

function reply(response: ServerResponse, path: string, body: string, script: Script) {
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

const ANSWER = 'Nothing else is wrong.'

/** Where the agents are: `npm install --prefix FOLDER` of their packages; else those of the PATH. */
const place = process.env['GATEHOUSE_TEST_AGENTS']
const path = place === undefined ? '' : join(place, 'node_modules/.bin')

/** How each real agent is told of its model; `home` is a folder that stands for its user's. */
const AGENTS: Record<
  string,
  (url: string, home: string) => { env: Record<string, string>; args: string }
> = {
  claude: (url) => ({
    env: { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: 'test-key-of-claude' },
    args: '',
  }),
  codex: (url) => ({
    env: { OPENAI_API_KEY: 'test-key-of-codex', CODEX_API_KEY: 'test-key-of-codex' },
    args: `-c openai_base_url=${url}/v1`,
  }),
  opencode(url, home) {
    const model = { npm: '@ai-sdk/openai-compatible', models: { m: {} } }
    const options = { baseURL: `${url}/v1`, apiKey: 'test-key-of-opencode' }
    const file = join(home, 'opencode.json')
    writeFileSync(
      file,
      JSON.stringify({ provider: { own: { ...model, options } }, model: 'own/m' }),
    )
    return { env: { OPENCODE_CONFIG: file }, args: '' }
  },
  gemini: (url, home) => {
    mkdirSync(join(home, '.gemini'))
    const auth = { selectedType: 'gemini-api-key' }
    writeFileSync(join(home, '.gemini/settings.json'), JSON.stringify({ security: { auth } }))
    return {
      env: { GEMINI_API_KEY: 'test-key-of-gemini', GOOGLE_GEMINI_BASE_URL: url },
      args: '',
    }
  },
}

for (const [name, tell] of Object.entries(AGENTS)) {
  const program = findProgram(name, `${path}:${process.env['PATH']}`)
  const skip = program === undefined && `no ${name} here: set GATEHOUSE_TEST_AGENTS`
  t.test(`${name} acts by the tools of its session`, { skip }, async (t) => {
    const home = await temporaryFolder(t, 'home')
    const url = await startAgentModel(t, {
      tool: 'record_event',
      args: { level: 'warning', message: `Seen by ${name}` },
      returns: 'Recorded as event',
      answer: ANSWER,
    })
    const { env, args } = tell(url, home)
    const variables = { ...env, HOME: home }
    const before = Object.keys(variables).map((key) => [key, process.env[key]] as const)
    Object.assign(process.env, variables)
    t.teardown(() => {
      for (const [key, value] of before) {
        if (value === undefined) delete process.env[key]
        else process.env[key] = value
      }
    })
    const ops = await startOps(t, postgres, {
      OPS_RUNNER: 'cli',
      OPS_AGENT_COMMAND: `${program} ${args}`.trim(),
      OPS_TIER1_MODEL: name === 'gemini' ? 'gemini-2.5-flash' : 'default',
    })
    await ended(ops, undefined, 90_000)
    const done = await ended(ops, (await trigger(ops)).id, 90_000)
    t.match(done, { status: 'completed' })
    t.match((await request(`${ops.base}/sessions/${done.id}`)).text, ANSWER)
    const events = await eventsOfSession(ops, done.id)
    t.match(events, [{ level: 'warning', message: `Seen by ${name}` }])
  })
}
