import { numberOf, objectOf, objectsOf, stringOf, type JsonObject } from '../../../kernel/json.ts'
import { shownValue, type Format, type Said, type Shown } from './cli-said.ts'

/** Lines of `claude -p --output-format stream-json --verbose`. */
export const readClaude: Format = (line) => {
  switch (line['type']) {
    case 'system':
      return readSystem(line)
    case 'assistant':
      return 'message' in line ? readAssistant(line) : undefined
    case 'user':
      return 'message' in line ? readUser(line) : undefined
    case 'result':
      return 'subtype' in line ? readResult(line) : undefined
  }
  return undefined
}

const ENDS: Readonly<Record<string, string>> = {
  error_max_turns: 'the turn cap is reached (OPS_MAX_TURNS)',
  error_max_budget_usd: 'the budget is spent',
}

function readSystem(line: JsonObject): Said | undefined {
  if (line['subtype'] === 'init') {
    const version = stringOf(line['claude_code_version']) ?? ''
    const text = `claude ${version}, model ${stringOf(line['model']) ?? 'unknown'}`
    return { shown: [{ kind: 'system', text }] }
  }
  if (line['subtype'] !== 'api_retry') return undefined
  const why = stringOf(line['error']) ?? 'error'
  const status = numberOf(line['error_status'])
  const problem = status === undefined ? why : `${why} (${status})`
  const text = `retry ${shownValue(line['attempt'])} of ${shownValue(line['max_retries'])}: ${problem}`
  const shown: readonly Shown[] = [{ kind: 'error', text }]
  // It would retry for minutes what no retry mends.
  const hopeless = why === 'authentication_failed' && {
    hopeless: `the agent's key is refused: ${problem}`,
  }
  return { shown, problem: `the model can't be reached: ${problem}`, ...hopeless }
}

function readAssistant(line: JsonObject): Said {
  const blocks = objectsOf(objectOf(line['message'])['content'])
  const said = blocks.flatMap(({ type, text }) => (type === 'text' ? [shownValue(text)] : []))
  const shown = blocks.flatMap((block): readonly Shown[] => {
    const { type, text, thinking, name, input } = block
    if (type === 'text') return [{ kind: 'text', text: shownValue(text) }]
    if (type === 'thinking') return [{ kind: 'text', text: shownValue(thinking) }]
    if (type === 'redacted_thinking') return []
    if (type !== 'tool_use') return [{ kind: 'text', text: shownValue(block) }]
    return [{ kind: 'tool', text: `${shownValue(name)} ${shownValue(input)}` }]
  })
  // A line of an agent within the agent is no turn of its own, and not what it says.
  if (stringOf(line['parent_tool_use_id']) !== undefined) return { shown }
  return {
    ...{ shown, speaker: 'agent', begins: true },
    ...(said.length > 0 && { message: said.join('\n') }),
  }
}

function readUser(line: JsonObject): Said {
  const { content } = objectOf(line['message'])
  const inner = stringOf(line['parent_tool_use_id']) !== undefined
  const shown = objectsOf(content).flatMap((block): readonly Shown[] => {
    if (block['type'] !== 'tool_result') return []
    const text = contentText(block['content'])
    return [{ kind: block['is_error'] === true ? 'error' : 'result', text }]
  })
  return inner ? { shown } : { shown, speaker: 'other' }
}

/** What a tool gave: text, or blocks of which only texts can be shown. */
function contentText(content: unknown): string {
  if (!Array.isArray(content)) return shownValue(content)
  return objectsOf(content)
    .map(({ type, text }) => (type === 'text' ? shownValue(text) : `[${shownValue(type)}]`))
    .join('\n')
}

function readResult(line: JsonObject): Said {
  const subtype = stringOf(line['subtype']) ?? ''
  const ok = line['is_error'] !== true && subtype === 'success'
  const text = stringOf(line['result'])
  const listed = Array.isArray(line['errors']) ? line['errors'].map(shownValue).join('; ') : ''
  const problem = ENDS[subtype] ?? (listed || text || `the agent ended with ${subtype}`)
  return {
    cost: costOf(line),
    speaker: 'other',
    result: { ok, text, turns: numberOf(line['num_turns']), ...(!ok && { problem }) },
    ...(!ok && { shown: [{ kind: 'error', text: problem }] }),
  }
}

/**
 * What this session adds: after `--resume` the total includes the parent's. The price of a model that
 * the agent does not know is invented, so it is none.
 */
function costOf(line: JsonObject): number | null {
  const since = line['model_usage_since_last_result']
  const usage = Object.values(objectOf(since ?? line['modelUsage'])).map(objectOf)
  if (usage.some(({ costBasis }) => costBasis === 'unknown')) return null
  if (since === undefined) return numberOf(line['total_cost_usd']) ?? null
  return usage.reduce((sum, { costUSD }) => sum + (numberOf(costUSD) ?? 0), 0)
}
