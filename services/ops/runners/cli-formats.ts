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

export interface OutputLine {
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
export type LineFormat = (line: JsonObject) => AgentMessage | undefined

/** Text as it is, any other value as JSON. */
function describeValue(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

/** Lines of `claude -p --output-format stream-json --verbose`. */
const readClaude: LineFormat = (line) => {
  switch (line['type']) {
    case 'system':
      return readClaudeSystem(line)
    case 'assistant':
      return 'message' in line ? readClaudeAssistant(line) : undefined
    case 'user':
      return 'message' in line ? readClaudeUser(line) : undefined
    case 'result':
      return 'subtype' in line ? readClaudeResult(line) : undefined
  }
  return undefined
}

const CLAUDE_PROBLEMS: Readonly<Record<string, string>> = {
  error_max_turns: 'the turn cap is reached (OPS_MAX_TURNS)',
  error_max_budget_usd: 'the budget is spent',
}

function readClaudeSystem(line: JsonObject): AgentMessage | undefined {
  if (line['subtype'] === 'init') {
    const version = stringOf(line['claude_code_version']) ?? ''
    const text = `claude ${version}, model ${stringOf(line['model']) ?? 'unknown'}`
    return { output: [{ kind: 'system', text }] }
  }
  if (line['subtype'] !== 'api_retry') return undefined
  const why = stringOf(line['error']) ?? 'error'
  const status = numberOf(line['error_status'])
  const problem = status === undefined ? why : `${why} (${status})`
  const text = `retry ${describeValue(line['attempt'])} of ${describeValue(line['max_retries'])}: ${problem}`
  const output: readonly OutputLine[] = [{ kind: 'error', text }]
  // It would retry for minutes what no retry mends.
  const fatal = why === 'authentication_failed' && {
    fatal: `the agent's key is refused: ${problem}`,
  }
  return { output, problem: `the model can't be reached: ${problem}`, ...fatal }
}

function readClaudeAssistant(line: JsonObject): AgentMessage {
  const blocks = objectsOf(objectOf(line['message'])['content'])
  const said = blocks.flatMap(({ type, text }) => (type === 'text' ? [describeValue(text)] : []))
  const output = blocks.flatMap((block): readonly OutputLine[] => {
    const { type, text, thinking, name, input } = block
    if (type === 'text') return [{ kind: 'text', text: describeValue(text) }]
    if (type === 'thinking') return [{ kind: 'text', text: describeValue(thinking) }]
    if (type === 'redacted_thinking') return []
    if (type !== 'tool_use') return [{ kind: 'text', text: describeValue(block) }]
    return [{ kind: 'tool', text: `${describeValue(name)} ${describeValue(input)}` }]
  })
  // A line of an agent within the agent is no turn of its own, and not what it says.
  if (stringOf(line['parent_tool_use_id']) !== undefined) return { output }
  return {
    ...{ output, actor: 'agent', resumes: true },
    ...(said.length > 0 && { text: said.join('\n') }),
  }
}

function readClaudeUser(line: JsonObject): AgentMessage {
  const { content } = objectOf(line['message'])
  const inner = stringOf(line['parent_tool_use_id']) !== undefined
  const output = objectsOf(content).flatMap((block): readonly OutputLine[] => {
    if (block['type'] !== 'tool_result') return []
    const text = contentText(block['content'])
    return [{ kind: block['is_error'] === true ? 'error' : 'result', text }]
  })
  return inner ? { output } : { output, actor: 'other' }
}

/** What a tool gave: text, or blocks of which only texts can be output. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return describeValue(content)
  return objectsOf(content)
    .map(({ type, text }) => (type === 'text' ? describeValue(text) : `[${describeValue(type)}]`))
    .join('\n')
}

function readClaudeResult(line: JsonObject): AgentMessage {
  const subtype = stringOf(line['subtype']) ?? ''
  const ok = line['is_error'] !== true && subtype === 'success'
  const text = stringOf(line['result'])
  const listed = Array.isArray(line['errors']) ? line['errors'].map(describeValue).join('; ') : ''
  const problem = CLAUDE_PROBLEMS[subtype] ?? (listed || text || `the agent ended with ${subtype}`)
  return {
    cost: claudeCost(line),
    actor: 'other',
    result: { ok, text, turns: numberOf(line['num_turns']), ...(!ok && { problem }) },
    ...(!ok && { output: [{ kind: 'error', text: problem }] }),
  }
}

/**
 * What this session adds: after `--resume` the total includes the parent's. The price of a model
 * that the agent does not know is invented: then the cost is null.
 */
function claudeCost(line: JsonObject): number | null {
  const since = line['model_usage_since_last_result']
  const usage = Object.values(objectOf(since ?? line['modelUsage'])).map(objectOf)
  if (usage.some(({ costBasis }) => costBasis === 'unknown')) return null
  if (since === undefined) return numberOf(line['total_cost_usd']) ?? null
  return usage.reduce((sum, { costUSD }) => sum + (numberOf(costUSD) ?? 0), 0)
}

/** Lines of `codex exec --json`; it reports tokens, but no cost. */
const readCodex: LineFormat = (line) => {
  switch (line['type']) {
    case 'thread.started':
      return {
        output: [{ kind: 'system', text: `codex, thread ${describeValue(line['thread_id'])}` }],
      }
    case 'turn.started':
      return { resumes: true }
    case 'turn.completed':
      return { result: { ok: true } }
    case 'turn.failed': {
      const problem = stringOf(objectOf(line['error'])['message']) ?? 'the turn failed'
      return { output: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
    case 'item.started':
    case 'item.completed':
      return 'item' in line
        ? readCodexItem(objectOf(line['item']), line['type'] === 'item.completed')
        : undefined
    case 'error': {
      // Also while it connects again, so it is not the end yet.
      const problem = stringOf(line['message'])
      if (problem === undefined) return undefined
      return { output: [{ kind: 'error', text: problem }], problem }
    }
  }
  return undefined
}

function readCodexItem(item: JsonObject, completed: boolean): AgentMessage | undefined {
  const text = stringOf(item['text']) ?? ''
  switch (item['type']) {
    case 'agent_message':
      if (!completed) return {}
      return { output: [{ kind: 'text', text }], actor: 'agent', text }
    case 'reasoning':
      return completed ? { output: [{ kind: 'text', text }], actor: 'agent' } : {}
    case 'error':
      return { output: [{ kind: 'error', text: describeValue(item['message']) }] }
    case 'command_execution': {
      if (!completed) {
        const command = describeValue(item['command'])
        return { output: [{ kind: 'tool', text: command }], actor: 'agent' }
      }
      const kind = numberOf(item['exit_code']) === 0 ? 'result' : 'error'
      const output = describeValue(item['aggregated_output'])
      return { output: [{ kind, text: output }], actor: 'other' }
    }
  }
  // For example a file change, a search, or a tool of another server.
  return { output: [{ kind: completed ? 'result' : 'tool', text: describeValue(item) }] }
}

/** Lines of `gemini -o stream-json`; it reports tokens, but no cost. */
const readGemini: LineFormat = (line) => {
  switch (line['type']) {
    case 'init':
      return { output: [{ kind: 'system', text: `gemini, model ${describeValue(line['model'])}` }] }
    case 'message': {
      const text = stringOf(line['content'])
      if (text === undefined) return undefined
      // The prompt comes back: people see it with the session.
      if (line['role'] !== 'assistant') return { actor: 'other' }
      const part = line['delta'] === true && { isPart: true as const }
      return { output: [{ kind: 'text', text }], actor: 'agent', text, ...part }
    }
    case 'tool_use': {
      if (!('tool_name' in line)) return undefined
      const text = `${describeValue(line['tool_name'])} ${describeValue(line['parameters'])}`
      return { output: [{ kind: 'tool', text }], actor: 'agent' }
    }
    case 'tool_result': {
      if (!('tool_id' in line)) return undefined
      const failed = line['status'] !== 'success'
      const text = stringOf(line['output']) ?? stringOf(objectOf(line['error'])['message']) ?? ''
      return { output: [{ kind: failed ? 'error' : 'result', text }], actor: 'other' }
    }
    case 'error': {
      const problem = stringOf(line['message'])
      if (problem === undefined) return undefined
      return { output: [{ kind: 'error', text: problem }], problem }
    }
    case 'result': {
      if (!('status' in line) || 'subtype' in line) return undefined
      if (line['status'] === 'success') return { result: { ok: true } }
      const problem = stringOf(objectOf(line['error'])['message']) ?? 'the agent failed'
      return { output: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
  }
  return undefined
}

/**
 * Lines of `opencode run --format json`. There is no last line: a step that calls no tool is the
 * last one.
 */
const readOpencode: LineFormat = (line) => {
  if (!('sessionID' in line)) return undefined
  const part = objectOf(line['part'])
  switch (line['type']) {
    case 'step_start':
      return { actor: 'agent', resumes: true }
    case 'text': {
      const text = describeValue(part['text'])
      return { output: [{ kind: 'text', text }], text }
    }
    case 'reasoning':
      return { output: [{ kind: 'text', text: describeValue(part['text']) }] }
    case 'tool_use':
      return readOpencodeTool(part)
    case 'step_finish':
      return {
        actor: 'other',
        cost: opencodeCost(part),
        ...(part['reason'] !== 'tool-calls' && { result: opencodeResult(part['reason']) }),
      }
    case 'error': {
      const error = objectOf(line['error'])
      const message = stringOf(objectOf(error['data'])['message']) ?? stringOf(error['message'])
      const problem = message ?? stringOf(error['name']) ?? 'the agent failed'
      return { output: [{ kind: 'error', text: problem }], result: { ok: false, problem } }
    }
  }
  return undefined
}

function readOpencodeTool(part: JsonObject): ReturnType<LineFormat> {
  const { status, input, output, error } = objectOf(part['state'])
  const call = {
    kind: 'tool',
    text: `${describeValue(part['tool'])} ${describeValue(input)}`,
  } as const
  if (status === 'error') return { output: [call, { kind: 'error', text: describeValue(error) }] }
  return { output: [call, { kind: 'result', text: describeValue(output) }] }
}

function opencodeResult(reason: unknown): { ok: boolean; problem?: string } {
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
export function readAgentLine(line: JsonObject): AgentMessage | undefined {
  for (const format of FORMATS) {
    const message = format(line)
    if (message !== undefined) return message
  }
  return undefined
}
