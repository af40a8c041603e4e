import { objectOf } from '../../../../kernel/json.ts'
import { readReasoning, withoutEnd, withoutReasoning } from '../quirks/reasoning.ts'
import { redactDeep, type Redact } from '../../redact.ts'
import type { LineKind } from '../sessions/output.ts'
import { readAgentLine, type AgentMessage, type Result } from './cli-formats.ts'
import { turnText, type TurnCost } from './runner.ts'

/** What an agent may use up. */
export interface Limits {
  turns: number
  /** US dollars that are left; Infinity for no limit. */
  budget: number
}

/** `call` numbers the tool call that a line is of. */
type Show = (kind: LineKind, text: string, call?: number | null) => void

/** What a whole stream says. */
export type StreamEnd = ReturnType<ReturnType<typeof createStreamReader>['end']>

/**
 * Characters of a message that comes in parts, and of the last message, that are read. Of a line
 * that is shown, the output reads as much (sessions/output-lines.ts).
 */
const MAX_TEXT = 64 * 1024
const CUT = 'The message is longer than 64 KB: its beginning was not kept.'
/** The column takes no more turns. */
const MAX_TURNS = 2 ** 31 - 1
/** US dollars. A line that claims to cost more, or less than nothing, has no price. */
const MAX_LINE_COST = 1_000_000
/** Calls remembered until their results come. The results of further calls stand alone. */
const MAX_OPEN_CALLS = 1_000

/**
 * Reads an agent's stream and passes its output to `show`. Every text in a line is redacted by
 * itself, because in JSON within JSON a secret is escaped twice.
 */
export function createStreamReader(limits: Limits, redact: Redact, show: Show) {
  const transcript = createTranscript(show)
  const usage = createUsage(limits)
  /** Undefined as long as the stream does not say that the work has ended. */
  let result: Result | undefined
  /** What went wrong last. */
  let problem: string | undefined
  let fatal: string | undefined

  return {
    take(line: string) {
      if (line.trim() === '') return
      const value = parseLine(line, redact)
      const message = value === undefined ? undefined : readAgentLine(objectOf(value))
      const ended = message === undefined ? undefined : usage.add(message)
      transcript.add(line, value, message, ended)
      if (message === undefined) return
      if (message.resumes === true) result = undefined
      result = message.result ?? result
      problem = message.problem ?? problem
      fatal ??= message.fatal ?? usage.problem()
    },
    /** Why the agent must be stopped; undefined while it may go on. */
    fatal: () => fatal,
    /** US dollars so far; null if not all of them are known. */
    cost: () => usage.total().cost_usd,
    /** What the whole stream says, once it is over. */
    end() {
      const lastText = transcript.end(usage.lastTurn())
      // What the agent found stands at the end.
      const message = (result?.text ?? lastText)?.slice(-MAX_TEXT)
      return { result, problem, message, ...usage.total() }
    },
  }
}

/** Shows what an agent says and does. */
function createTranscript(show: Show) {
  const numberOf = createCallNumbers()
  let lastText: string | undefined
  let parts: string | undefined

  /** Shows a text without the reasoning that it begins with; another one stays as it is. */
  function say(text: string) {
    const said = textFor(text)
    if (said === text.trim()) show('text', text)
    else if (said !== '') show('text', said)
  }

  /** Parts are shown as one message: a secret may be split between two of them. */
  function endParts() {
    if (parts === undefined) return
    if (parts.length > MAX_TEXT) show('system', CUT)
    lastText = parts.slice(-MAX_TEXT)
    say(lastText)
    parts = undefined
  }

  return {
    /** Shows what a line means. `ended` tells of the turn that ended before it. */
    add(line: string, value: unknown, message: AgentMessage | undefined, ended?: string) {
      if (ended !== undefined) {
        endParts()
        show('turn', ended)
      }
      if (message?.isPart === true && message.text !== undefined) {
        parts = (parts ?? '') + message.text
        // The end has the report. Not at each part: that would copy all of it.
        if (parts.length > 2 * MAX_TEXT) parts = parts.slice(-MAX_TEXT - 1)
        return
      }
      endParts()
      if (value === undefined) show('text', line)
      else if (message === undefined) show('system', JSON.stringify(value))
      for (const { kind, text, call } of message?.output ?? []) {
        if (kind === 'text') say(text)
        else show(kind, text, numberOf(kind, call))
      }
      // Most agents have written their last message before: it must not appear twice.
      const final = message?.result?.ok === true ? message.result.text : undefined
      if (final !== undefined && final !== lastText) say(final)
      lastText = message?.text ?? lastText
    },
    /** Gives the agent's last message. */
    end(lastTurn: string | undefined) {
      endParts()
      if (lastTurn !== undefined) show('turn', lastTurn)
      return lastText
    },
  }
}

/** Numbers the tool calls of an agent, so that a result is found with its call. */
function createCallNumbers() {
  const open = new Map<string, number>()
  let last = 0
  return (kind: LineKind, id: string | undefined): number | null => {
    if (kind === 'tool') {
      last++
      if (id !== undefined && open.size < MAX_OPEN_CALLS) open.set(id, last)
      return last
    }
    if (id === undefined) return null
    const call = open.get(id) ?? null
    open.delete(id)
    return call
  }
}

/** Counts what an agent uses up. */
function createUsage(limits: Limits) {
  let turns = 0
  let reportedTurns = 0
  let cost = 0
  let lastActor: AgentMessage['actor']
  let turn: TurnCost | undefined
  /** Whether every cost so far is known; undefined before the first one. */
  let isPriced: boolean | undefined

  return {
    /** Tells of the turn before if the message begins another one. */
    add({ actor, cost: told, result, turn: spent }: AgentMessage): string | undefined {
      const begins = actor === 'agent' && lastActor !== 'agent'
      const ended =
        begins && turns > 0 ? turnText(turns, turn ?? { tokens: null, cost: null }) : undefined
      if (begins) {
        turns++
        turn = undefined
      }
      turn = spent ?? turn
      lastActor = actor ?? lastActor
      if (told !== undefined) {
        const isKnown = told !== null && told >= 0 && told < MAX_LINE_COST
        isPriced = isKnown && (isPriced ?? true)
        cost += isKnown ? told : 0
      }
      reportedTurns += result?.turns ?? 0
      return ended
    },
    /** The line of the last turn, which ends with the stream; undefined without its figures. */
    lastTurn: () => (turn === undefined ? undefined : turnText(turns, turn)),
    /** Which limit is passed; undefined while none is. */
    problem(): string | undefined {
      const { turns: cap, budget } = limits
      if (turns > cap) return `the cap of ${cap} turns (OPS_MAX_TURNS) is reached`
      if (cost <= budget) return undefined
      return `the budget is spent: $${cost.toFixed(4)} of $${budget.toFixed(4)}`
    },
    total() {
      const isCount = Number.isInteger(reportedTurns) && reportedTurns > 0
      const counted = isCount && reportedTurns <= MAX_TURNS ? reportedTurns : turns
      const cost_usd = isPriced === true ? cost : null
      return { cost_usd, num_turns: counted > 0 ? counted : null }
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

/**
 * A text without the reasoning that it begins with. A mark that nothing closes may be a quotation:
 * then all of the text stays.
 */
function textFor(text: string): string {
  return readReasoning(text, false).isOpen ? text.trim() : withoutReasoning(text)
}

/** An agent's last message as the summary of its session. */
export function readSummary(message: string): string {
  return textFor(withoutEnd(message).trimEnd())
}
