import {
  type JsonObject,
  numberOf,
  objectOf,
  objectsOf,
  stringOf,
} from '../../../../kernel/json.ts'
import type { LineKind } from '../sessions/output.ts'
import type { TurnCost } from './runner.ts'

/** What one line of an agent's stream means, whichever agent wrote it. */
export interface AgentMessage {
  /** What people see of it. */
  output?: readonly OutputLine[]
  /** Who acts. A turn begins whenever the agent acts after another. */
  actor?: 'agent' | 'other'
  /** What the agent says; the last such text is the summary. A part continues the text before. */
  text?: string
  isPart?: boolean
  /** What the turn took that ends here, where the agent says it turn by turn. */
  turn?: TurnCost
  /** US dollars that this line adds; null if the agent can't know its cost. */
  cost?: number | null
  /** How the work ended, if that is known yet. */
  result?: Result
  /** Work goes on: an earlier result does not count. */
  resumes?: true
  /** Something went wrong. Without a result, this is why the session failed. */
  problem?: string
  /** Why it makes no sense to go on. */
  fatal?: string
}

interface OutputLine {
  kind: LineKind
  text: string
  /** The agent's name of the tool call that it is of. */
  call?: string | undefined
}

/** The end of an agent's work, in its own words. */
export interface Result {
  ok: boolean
  /** Its last message; undefined if the stream had it before. */
  text?: string | undefined
  problem?: string
  /** Turns by the agent's own count. */
  turns?: number | undefined
}

/** Reads a line of one agent; undefined for a line that it does not know. */
type LineFormat = (message: JsonObject) => AgentMessage | undefined

/** How the lines of one agent are read, by their type. */
type LineFormats = Readonly<Record<string, LineFormat>>

/** Lines of other agents may have the same type: those without the field are not read. */
function having(field: string, read: LineFormat): LineFormat {
  return (message) => (field in message ? read(message) : undefined)
}

/** Text as it is, any other value as JSON. */
function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function line(kind: LineKind, text: unknown, call?: unknown): OutputLine {
  return { kind, text: asText(text), call: stringOf(call) }
}

/** A message that people see one output of. */
function shown(kind: LineKind, text: unknown, call?: unknown) {
  return { output: [line(kind, text, call)] }
}

function toolCall(name: unknown, input: unknown, call: unknown): OutputLine {
  return line('tool', `${asText(name)} ${asText(input)}`, call)
}

/** The end of work that failed. */
function failure(problem: string): AgentMessage {
  return { ...shown('error', problem), result: { ok: false, problem } }
}

/** An error that the agent may still get over: codex reports one while it connects again. */
function readError({ message }: JsonObject): AgentMessage | undefined {
  const problem = stringOf(message)
  return problem === undefined ? undefined : { ...shown('error', problem), problem }
}

function messageIn(error: unknown) {
  return stringOf(objectOf(error)['message'])
}

/** Lines of `claude -p --output-format stream-json --verbose`. */
const CLAUDE: LineFormats = {
  system: claudeSystem,
  assistant: having('message', claudeAssistant),
  user: having('message', claudeUser),
  result: having('subtype', claudeResult),
}

const CLAUDE_PROBLEMS: Readonly<Record<string, string>> = {
  error_max_turns: 'the turn cap is reached (OPS_MAX_TURNS)',
  error_max_budget_usd: 'the budget is spent',
}

function claudeSystem(message: JsonObject): AgentMessage | undefined {
  const { subtype, claude_code_version: version, model, attempt, max_retries: retries } = message
  if (subtype === 'init') {
    const name = stringOf(model) ?? 'unknown'
    return shown('system', `claude ${stringOf(version) ?? ''}, model ${name}`)
  }
  if (subtype !== 'api_retry') return undefined
  const why = stringOf(message['error']) ?? 'error'
  const status = numberOf(message['error_status'])
  const problem = status === undefined ? why : `${why} (${status})`
  const tries = `retry ${asText(attempt)} of ${asText(retries)}`
  const { output } = shown('error', `${tries}: ${problem}`)
  // It would retry for minutes what no retry mends.
  if (why === 'authentication_failed') {
    return { output, fatal: `the agent's key is refused: ${problem}` }
  }
  return { output, problem: `the model can't be reached: ${problem}` }
}

function claudeAssistant({ message, parent_tool_use_id: parent }: JsonObject): AgentMessage {
  const blocks = objectsOf(objectOf(message)['content'])
  const said = blocks.flatMap(({ type, text }) => (type === 'text' ? [asText(text)] : []))
  const output = blocks.flatMap((block): readonly OutputLine[] => {
    const { type, text, thinking, name, input, id } = block
    if (type === 'redacted_thinking') return []
    if (type === 'tool_use') return [toolCall(name, input, id)]
    return [line('text', type === 'text' ? text : type === 'thinking' ? thinking : block)]
  })
  // A line of an agent within the agent is no turn of its own, and not what it says.
  if (stringOf(parent) !== undefined) return { output }
  const text = said.length > 0 && { text: said.join('\n') }
  return { output, actor: 'agent', resumes: true, ...text }
}

function claudeUser({ message, parent_tool_use_id: parent }: JsonObject): AgentMessage {
  const output = objectsOf(objectOf(message)['content'])
    .filter(({ type }) => type === 'tool_result')
    .map((block) => {
      const kind = block['is_error'] === true ? 'error' : 'result'
      return line(kind, contentText(block), block['tool_use_id'])
    })
  return stringOf(parent) === undefined ? { output, actor: 'other' } : { output }
}

/** What a tool gave: text, or blocks of which only texts can be output. */
function contentText({ content }: JsonObject): string {
  if (!Array.isArray(content)) return asText(content)
  return objectsOf(content)
    .map(({ type, text }) => (type === 'text' ? asText(text) : `[${asText(type)}]`))
    .join('\n')
}

function claudeResult(message: JsonObject): AgentMessage {
  const { is_error, errors, num_turns } = message
  const subtype = stringOf(message['subtype']) ?? ''
  const text = stringOf(message['result'])
  const end = { cost: claudeCost(message), actor: 'other' } as const
  const turns = numberOf(num_turns)
  if (is_error !== true && subtype === 'success') {
    return { ...end, result: { ok: true, text, turns } }
  }
  const listed = Array.isArray(errors) ? errors.map(asText).join('; ') : ''
  const said = listed || text || `the agent ended with ${subtype}`
  const problem = CLAUDE_PROBLEMS[subtype] ?? said
  return { ...end, ...failure(problem), result: { ok: false, problem, text, turns } }
}

/**
 * What this session adds: after `--resume` the total includes the parent's. The price of a model
 * that the agent does not know is invented: then the cost is null.
 */
function claudeCost(message: JsonObject) {
  const since = message['model_usage_since_last_result']
  const usage = Object.values(objectOf(since ?? message['modelUsage'])).map(objectOf)
  if (usage.some(({ costBasis }) => costBasis === 'unknown')) return null
  if (since === undefined) return numberOf(message['total_cost_usd']) ?? null
  return usage.reduce((sum, { costUSD }) => sum + (numberOf(costUSD) ?? 0), 0)
}

/** Lines of `codex exec --json`; it reports tokens, but no cost. */
const CODEX: LineFormats = {
  'thread.started': ({ thread_id: id }) => shown('system', `codex, thread ${asText(id)}`),
  'turn.started': () => ({ resumes: true }),
  'turn.completed': () => ({ result: { ok: true } }),
  'turn.failed': ({ error }) => failure(messageIn(error) ?? 'the turn failed'),
  'item.started': having('item', ({ item }) => codexStart(objectOf(item))),
  'item.completed': having('item', ({ item }) => codexItem(objectOf(item))),
  error: readError,
}

function codexStart(item: JsonObject): AgentMessage {
  const { type, command, message, id } = item
  if (type === 'agent_message' || type === 'reasoning') return {}
  if (type === 'error') return shown('error', message)
  if (type === 'command_execution') return { ...shown('tool', command, id), actor: 'agent' }
  // For example a file change, a search, or a tool of another server.
  return shown('tool', item, id)
}

function codexItem(item: JsonObject): AgentMessage {
  const { type, message, exit_code, aggregated_output: result, id } = item
  const text = stringOf(item['text']) ?? ''
  if (type === 'agent_message') return { ...shown('text', text), actor: 'agent', text }
  if (type === 'reasoning') return { ...shown('text', text), actor: 'agent' }
  if (type === 'error') return shown('error', message)
  if (type !== 'command_execution') return shown('result', item, id)
  return { ...shown(exit_code === 0 ? 'result' : 'error', result, id), actor: 'other' }
}

/** Lines of `gemini -o stream-json`; it reports tokens, but no cost. */
const GEMINI: LineFormats = {
  init: ({ model }) => shown('system', `gemini, model ${asText(model)}`),
  message: geminiMessage,
  tool_use: having('tool_name', ({ tool_name: tool, parameters, tool_id: id }) => ({
    output: [toolCall(tool, parameters, id)],
    actor: 'agent',
  })),
  tool_result: having('tool_id', ({ status, output, error, tool_id: id }) => {
    const text = stringOf(output) ?? messageIn(error) ?? ''
    return { ...shown(status === 'success' ? 'result' : 'error', text, id), actor: 'other' }
  }),
  error: readError,
  result: having('status', ({ status, error }) => {
    if (status === 'success') return { result: { ok: true } }
    return failure(messageIn(error) ?? 'the agent failed')
  }),
}

function geminiMessage({ content, role, delta }: JsonObject): AgentMessage | undefined {
  const text = stringOf(content)
  if (text === undefined) return undefined
  // The prompt comes back: people see it with the session.
  if (role !== 'assistant') return { actor: 'other' }
  return { ...shown('text', text), actor: 'agent', text, isPart: delta === true }
}

/**
 * Lines of `opencode run --format json`. There is no last line: a step that calls no tool is the
 * last one.
 */
const OPENCODE: LineFormats = {
  step_start: opencodePart(() => ({ actor: 'agent', resumes: true })),
  text: opencodePart(({ text }) => ({ ...shown('text', text), text: asText(text) })),
  reasoning: opencodePart(({ text }) => shown('text', text)),
  tool_use: opencodePart(opencodeTool),
  step_finish: opencodePart(opencodeStep),
  error: having('sessionID', ({ error }) => {
    const { data, message, name } = objectOf(error)
    return failure(messageIn(data) ?? stringOf(message) ?? stringOf(name) ?? 'the agent failed')
  }),
}

function opencodePart(read: LineFormat): LineFormat {
  return having('sessionID', ({ part }) => read(objectOf(part)))
}

function opencodeStep(part: JsonObject): AgentMessage {
  const { reason } = part
  const cost = opencodeCost(part)
  const turn = { tokens: numberOf(objectOf(part['tokens'])['total']) ?? null, cost }
  const end = { actor: 'other', cost, turn } as const
  if (reason === 'tool-calls') return end
  if (reason === 'stop') return { ...end, result: { ok: true } }
  const problem = `the model's answer ended with ${asText(reason)}`
  return { ...end, result: { ok: false, problem } }
}

function opencodeTool({ tool, state, callID: id }: JsonObject): AgentMessage {
  const { status, input, output, error } = objectOf(state)
  const end = status === 'error' ? line('error', error, id) : line('result', output, id)
  return { output: [toolCall(tool, input, id), end] }
}

/** A step that used tokens and cost nothing is one of a model without a price. */
function opencodeCost(part: JsonObject) {
  const cost = numberOf(part['cost'])
  if (cost === undefined) return null
  return cost === 0 && (numberOf(objectOf(part['tokens'])['total']) ?? 0) > 0 ? null : cost
}

/** The first format that knows a line reads it: no two agents write the same lines. */
const FORMATS: readonly LineFormats[] = [CLAUDE, OPENCODE, CODEX, GEMINI]

/** Reads a line of any known agent; undefined for other lines. */
export function readAgentLine(value: JsonObject): AgentMessage | undefined {
  const type = stringOf(value['type']) ?? ''
  for (const format of FORMATS) {
    const message = Object.hasOwn(format, type) ? format[type]?.(value) : undefined
    if (message !== undefined) return message
  }
  return undefined
}
