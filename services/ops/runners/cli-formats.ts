import { type JsonObject, numberOf, objectOf, objectsOf, stringOf } from '../../../kernel/json.ts'
import type { LineKind } from '../sessions/output.ts'

/** What one line of an agent's stream means, whichever agent wrote it. */
export interface AgentMessage {
  /** What people see of it. */
  readonly output?: readonly OutputLine[]
  /** Who acts. A turn begins whenever the agent acts after another. */
  readonly actor?: 'agent' | 'other'
  /** What the agent says; the last such text is the summary. A part continues the text before. */
  readonly text?: string
  readonly isPart?: true
  /** US dollars that this line adds; null if the agent can't know its cost. */
  readonly cost?: number | null
  /** How the work ended, as far as is known by now. */
  readonly result?: Result
  /** Work goes on: an earlier result does not count. */
  readonly resumes?: true
  /** Something went wrong. Without a result, this is why the session failed. */
  readonly problem?: string
  /** Why it makes no sense to go on. */
  readonly fatal?: string
}

interface OutputLine {
  readonly kind: LineKind
  readonly text: string
}

/** The end of an agent's work, in its own words. */
export interface Result {
  readonly ok: boolean
  /** Its last message; undefined if the stream had it before. */
  readonly text?: string | undefined
  readonly problem?: string
  /** Turns by the agent's own count. */
  readonly turns?: number | undefined
}

/** Reads a line of one agent; undefined for a line that it does not know. */
type LineFormat = (message: JsonObject) => AgentMessage | undefined

/** Text as it is, any other value as JSON. */
function describeValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function line(kind: LineKind, text: unknown): OutputLine {
  return { kind, text: describeValue(text) }
}

function toolCall(name: unknown, input: unknown): OutputLine {
  return line('tool', `${describeValue(name)} ${describeValue(input)}`)
}

/** The end of work that failed. */
function failure(problem: string): AgentMessage {
  return { output: [line('error', problem)], result: { ok: false, problem } }
}

/** An error that the agent may still get over: codex reports one while it connects again. */
function readError({ message }: JsonObject): AgentMessage | undefined {
  const problem = stringOf(message)
  return problem === undefined ? undefined : { output: [line('error', problem)], problem }
}

function messageIn(error: unknown): string | undefined {
  return stringOf(objectOf(error)['message'])
}

/** Lines of `claude -p --output-format stream-json --verbose`. */
const readClaude: LineFormat = (message) => {
  switch (message['type']) {
    case 'system':
      return readClaudeSystem(message)
    case 'assistant':
      return 'message' in message ? readClaudeAssistant(message) : undefined
    case 'user':
      return 'message' in message ? readClaudeUser(message) : undefined
    case 'result':
      return 'subtype' in message ? readClaudeResult(message) : undefined
  }
  return undefined
}

const CLAUDE_PROBLEMS: Readonly<Record<string, string>> = {
  error_max_turns: 'the turn cap is reached (OPS_MAX_TURNS)',
  error_max_budget_usd: 'the budget is spent',
}

function readClaudeSystem(message: JsonObject): AgentMessage | undefined {
  const { subtype, claude_code_version: version, model, attempt, max_retries: retries } = message
  if (subtype === 'init') {
    const text = `claude ${stringOf(version) ?? ''}, model ${stringOf(model) ?? 'unknown'}`
    return { output: [line('system', text)] }
  }
  if (subtype !== 'api_retry') return undefined
  const why = stringOf(message['error']) ?? 'error'
  const status = numberOf(message['error_status'])
  const problem = status === undefined ? why : `${why} (${status})`
  const tries = `retry ${describeValue(attempt)} of ${describeValue(retries)}`
  const output = [line('error', `${tries}: ${problem}`)]
  // It would retry for minutes what no retry mends.
  const fatal = why === 'authentication_failed' && {
    fatal: `the agent's key is refused: ${problem}`,
  }
  return { output, problem: `the model can't be reached: ${problem}`, ...fatal }
}

function readClaudeAssistant({ message, parent_tool_use_id: parent }: JsonObject): AgentMessage {
  const blocks = objectsOf(objectOf(message)['content'])
  const said = blocks.flatMap(({ type, text }) => (type === 'text' ? [describeValue(text)] : []))
  const output = blocks.flatMap((block): readonly OutputLine[] => {
    const { type, text, thinking, name, input } = block
    if (type === 'redacted_thinking') return []
    if (type === 'tool_use') return [toolCall(name, input)]
    return [line('text', type === 'text' ? text : type === 'thinking' ? thinking : block)]
  })
  // A line of an agent within the agent is no turn of its own, and not what it says.
  if (stringOf(parent) !== undefined) return { output }
  const text = said.length > 0 && { text: said.join('\n') }
  return { output, actor: 'agent', resumes: true, ...text }
}

function readClaudeUser({ message, parent_tool_use_id: parent }: JsonObject): AgentMessage {
  const output = objectsOf(objectOf(message)['content'])
    .filter(({ type }) => type === 'tool_result')
    .map(({ content, is_error }) =>
      line(is_error === true ? 'error' : 'result', contentText(content)),
    )
  return stringOf(parent) === undefined ? { output, actor: 'other' } : { output }
}

/** What a tool gave: text, or blocks of which only texts can be output. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return describeValue(content)
  return objectsOf(content)
    .map(({ type, text }) => (type === 'text' ? describeValue(text) : `[${describeValue(type)}]`))
    .join('\n')
}

function readClaudeResult(message: JsonObject): AgentMessage {
  const { is_error, errors, num_turns } = message
  const subtype = stringOf(message['subtype']) ?? ''
  const text = stringOf(message['result'])
  const end = { cost: claudeCost(message), actor: 'other' } as const
  const turns = numberOf(num_turns)
  if (is_error !== true && subtype === 'success')
    return { ...end, result: { ok: true, text, turns } }
  const listed = Array.isArray(errors) ? errors.map(describeValue).join('; ') : ''
  const problem = CLAUDE_PROBLEMS[subtype] ?? (listed || text || `the agent ended with ${subtype}`)
  return { ...end, ...failure(problem), result: { ok: false, problem, text, turns } }
}

/**
 * What this session adds: after `--resume` the total includes the parent's. The price of a model
 * that the agent does not know is invented: then the cost is null.
 */
function claudeCost(message: JsonObject): number | null {
  const since = message['model_usage_since_last_result']
  const usage = Object.values(objectOf(since ?? message['modelUsage'])).map(objectOf)
  if (usage.some(({ costBasis }) => costBasis === 'unknown')) return null
  if (since === undefined) return numberOf(message['total_cost_usd']) ?? null
  return usage.reduce((sum, { costUSD }) => sum + (numberOf(costUSD) ?? 0), 0)
}

/** Lines of `codex exec --json`; it reports tokens, but no cost. */
const readCodex: LineFormat = (message) => {
  const { type, thread_id, error } = message
  switch (type) {
    case 'thread.started':
      return { output: [line('system', `codex, thread ${describeValue(thread_id)}`)] }
    case 'turn.started':
      return { resumes: true }
    case 'turn.completed':
      return { result: { ok: true } }
    case 'turn.failed':
      return failure(messageIn(error) ?? 'the turn failed')
    case 'item.started':
    case 'item.completed':
      if (!('item' in message)) return undefined
      return readCodexItem(objectOf(message['item']), type === 'item.completed')
    case 'error':
      return readError(message)
  }
  return undefined
}

function readCodexItem(item: JsonObject, completed: boolean): AgentMessage {
  const { type, message, command, exit_code, aggregated_output } = item
  const text = stringOf(item['text']) ?? ''
  switch (type) {
    case 'agent_message':
      return completed ? { output: [line('text', text)], actor: 'agent', text } : {}
    case 'reasoning':
      return completed ? { output: [line('text', text)], actor: 'agent' } : {}
    case 'error':
      return { output: [line('error', message)] }
    case 'command_execution': {
      if (!completed) return { output: [line('tool', command)], actor: 'agent' }
      const kind = numberOf(exit_code) === 0 ? 'result' : 'error'
      return { output: [line(kind, aggregated_output)], actor: 'other' }
    }
  }
  // For example a file change, a search, or a tool of another server.
  return { output: [line(completed ? 'result' : 'tool', item)] }
}

/** Lines of `gemini -o stream-json`; it reports tokens, but no cost. */
const readGemini: LineFormat = (message) => {
  const { type, status, error, output, role, delta, model, tool_name, parameters } = message
  switch (type) {
    case 'init':
      return { output: [line('system', `gemini, model ${describeValue(model)}`)] }
    case 'message': {
      const text = stringOf(message['content'])
      if (text === undefined) return undefined
      // The prompt comes back: people see it with the session.
      if (role !== 'assistant') return { actor: 'other' }
      const part = delta === true && { isPart: true as const }
      return { output: [line('text', text)], actor: 'agent', text, ...part }
    }
    case 'tool_use':
      if (!('tool_name' in message)) return undefined
      return { output: [toolCall(tool_name, parameters)], actor: 'agent' }
    case 'tool_result': {
      if (!('tool_id' in message)) return undefined
      const text = stringOf(output) ?? messageIn(error) ?? ''
      return { output: [line(status === 'success' ? 'result' : 'error', text)], actor: 'other' }
    }
    case 'error':
      return readError(message)
    case 'result':
      if (!('status' in message) || 'subtype' in message) return undefined
      if (status === 'success') return { result: { ok: true } }
      return failure(messageIn(error) ?? 'the agent failed')
  }
  return undefined
}

/**
 * Lines of `opencode run --format json`. There is no last line: a step that calls no tool is the
 * last one.
 */
const readOpencode: LineFormat = (message) => {
  if (!('sessionID' in message)) return undefined
  const part = objectOf(message['part'])
  const { text, reason } = part
  switch (message['type']) {
    case 'step_start':
      return { actor: 'agent', resumes: true }
    case 'text':
      return { output: [line('text', text)], text: describeValue(text) }
    case 'reasoning':
      return { output: [line('text', text)] }
    case 'tool_use':
      return { output: opencodeTool(part) }
    case 'step_finish': {
      const result = reason !== 'tool-calls' && { result: opencodeResult(reason) }
      return { actor: 'other', cost: opencodeCost(part), ...result }
    }
    case 'error': {
      const { data, message: text, name } = objectOf(message['error'])
      return failure(messageIn(data) ?? stringOf(text) ?? stringOf(name) ?? 'the agent failed')
    }
  }
  return undefined
}

function opencodeTool({ tool, state }: JsonObject): readonly OutputLine[] {
  const { status, input, output, error } = objectOf(state)
  const end = status === 'error' ? line('error', error) : line('result', output)
  return [toolCall(tool, input), end]
}

function opencodeResult(reason: unknown): Result {
  if (reason === 'stop') return { ok: true }
  return { ok: false, problem: `the model's answer ended with ${describeValue(reason)}` }
}

/** A step that used tokens and cost nothing is one of a model without a price. */
function opencodeCost(part: JsonObject): number | null {
  const cost = numberOf(part['cost'])
  if (cost === undefined) return null
  return cost === 0 && (numberOf(objectOf(part['tokens'])['total']) ?? 0) > 0 ? null : cost
}

/** The first format that knows a line reads it: no two agents write the same lines. */
const FORMATS: readonly LineFormat[] = [readClaude, readOpencode, readCodex, readGemini]

/** Reads a line of any known agent; undefined for a line that none of them writes. */
export function readAgentLine(value: JsonObject): AgentMessage | undefined {
  for (const format of FORMATS) {
    const message = format(value)
    if (message !== undefined) return message
  }
  return undefined
}
