import {
  isObject,
  objectOf,
  objectsOf,
  parseObject,
  type JsonObject,
} from '../../../kernel/json.ts'
import { redactDeep, type Redact } from '../redact.ts'
import type { LineKind } from '../sessions/output.ts'
import { readAgentLine, type AgentMessage, type Result } from './cli-formats.ts'

/** What an agent may use up. */
export interface Limits {
  readonly turns: number
  /** US dollars; undefined for no limit. */
  readonly cost: number | undefined
}

/** What a whole stream says. */
export type StreamEnd = ReturnType<ReturnType<typeof createStreamReader>['end']>

/** What an agent wants to record, as it wrote it. The tools that record it validate it. */
export interface Report {
  readonly events: readonly JsonObject[]
  readonly memories: readonly JsonObject[]
  readonly escalate: JsonObject | undefined
}

/** Characters of a message that comes in parts: no line of output is longer than that. */
const MAX_MESSAGE = 256 * 1024
/** The column takes no more turns. */
const MAX_TURNS = 2 ** 31 - 1
/** US dollars. A line that claims to cost more, or less than nothing, has no price. */
const MAX_LINE_COST = 1_000_000
const NO_REPORT: Report = { events: [], memories: [], escalate: undefined }
const REPORT_KEYS = ['events', 'memories', 'escalate']
const MAX_ENTRIES = 50
const FENCE = '\n```'

/**
 * Reads an agent's stream and passes its output to `show`. Every text in a line is redacted by
 * itself, because in JSON within JSON a secret is escaped twice.
 */
export function createStreamReader(
  limits: Limits,
  redact: (text: string) => string,
  show: (kind: LineKind, text: string) => void,
) {
  let [turns, reportedTurns, cost] = [0, 0, 0]
  let actor: AgentMessage['actor']
  /** Whether every cost so far is known; undefined before the first one. */
  let isPriced: boolean | undefined
  /** Undefined as long as the stream does not say that the work has ended. */
  let result: Result | undefined
  let lastText: string | undefined
  let parts: string | undefined
  /** What went wrong last. */
  let problem: string | undefined
  let fatal: string | undefined

  /** Parts are shown as one message: a secret may be split between two of them. */
  function endParts(): void {
    if (parts === undefined) return
    lastText = parts
    show('text', parts)
    parts = undefined
  }

  function showLine(line: string, value: unknown, message: AgentMessage | undefined): void {
    if (value === undefined) show('text', line)
    else if (message === undefined) show('system', JSON.stringify(value))
    for (const { kind, text } of message?.output ?? []) show(kind, text)
    // Most agents have written their last message before: it must not appear twice.
    const final = message?.result?.ok === true ? message.result.text : undefined
    if (final !== undefined && final !== lastText) show('text', final)
    lastText = message?.text ?? lastText
  }

  function count(message: AgentMessage): void {
    if (message.actor === 'agent' && actor !== 'agent') turns++
    actor = message.actor ?? actor
    if (message.cost !== undefined) {
      const isKnown = message.cost !== null && message.cost >= 0 && message.cost < MAX_LINE_COST
      isPriced = isKnown && (isPriced ?? true)
      cost += isKnown ? message.cost : 0
    }
    if (message.resumes === true) result = undefined
    if (message.result !== undefined) {
      result = message.result
      reportedTurns += message.result.turns ?? 0
    }
    problem = message.problem ?? problem
    fatal ??= message.fatal ?? limitProblem()
  }

  function limitProblem(): string | undefined {
    if (turns > limits.turns) return `the cap of ${limits.turns} turns (OPS_MAX_TURNS) is reached`
    if (limits.cost === undefined || cost <= limits.cost) return undefined
    return `the budget is spent: $${cost.toFixed(4)} of $${limits.cost.toFixed(4)}`
  }

  return {
    take(line: string): void {
      if (line.trim() === '') return
      const value = parseLine(line, redact)
      const message = value === undefined ? undefined : readAgentLine(objectOf(value))
      if (message?.isPart === true && message.text !== undefined) {
        parts = ((parts ?? '') + message.text).slice(0, MAX_MESSAGE)
      } else {
        endParts()
        showLine(line, value, message)
      }
      if (message !== undefined) count(message)
    },
    /** Why the agent must be stopped; undefined while it may go on. */
    fatal: () => fatal,
    /** What the whole stream says, once it is over. */
    end() {
      endParts()
      const isCount =
        Number.isInteger(reportedTurns) && reportedTurns > 0 && reportedTurns <= MAX_TURNS
      const counted = isCount ? reportedTurns : turns
      return {
        ...{ result, problem },
        /** The agent's last message. */
        message: result?.text ?? lastText,
        cost: isPriced === true ? cost : null,
        turns: counted > 0 ? counted : null,
      }
    },
  }
}

/**
 * Undefined for a line that is no JSON, or is nested too deep to be walked through (a RangeError).
 * A line of digits counts as text, for example hex: as a number it would lose digits.
 */
function parseLine(line: string, redact: Redact): unknown {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'number' ? undefined : redactDeep(value, redact)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined
    throw error
  }
}

/** Splits an agent's last message into the text for people and the report, if there is one. */
export function readReport(message: string): { readonly text: string; readonly report: Report } {
  for (const { from, json } of endingsOf(message.trimEnd())) {
    const report = parseReport(json)
    if (report !== undefined) return { text: message.slice(0, from).trim(), report }
  }
  return { text: message.trim(), report: NO_REPORT }
}

/** Where a report may stand: the last line, or a fenced block at the end. */
function endingsOf(message: string): readonly { readonly from: number; readonly json: string }[] {
  const line = message.lastIndexOf('\n') + 1
  const last = { from: line, json: message.slice(line) }
  if (!message.endsWith(FENCE)) return [last]
  const from = `\n${message}`.lastIndexOf(FENCE, message.length - FENCE.length)
  if (from < 0) return [last]
  const block = message.slice(from + FENCE.length - 1, -FENCE.length)
  return [{ from, json: block.replace(/^json/, '') }]
}

/** Undefined if the text is not a report. */
function parseReport(text: string): Report | undefined {
  const value = parseObject(text)
  if (value === undefined || !REPORT_KEYS.some((key) => key in value)) return undefined
  const { events, memories, escalate } = value
  return {
    events: objectsOf(events).slice(0, MAX_ENTRIES).map(withoutNulls),
    memories: objectsOf(memories).slice(0, MAX_ENTRIES).map(withoutNulls),
    escalate: isObject(escalate) ? escalate : undefined,
  }
}

function withoutNulls(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))
}
