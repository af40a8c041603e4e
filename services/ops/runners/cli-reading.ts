import { objectOf } from '../../../kernel/json.ts'
import { redactDeep, type Redact } from '../redact.ts'
import type { LineKind } from '../sessions/output.ts'
import { readClaude } from './cli-claude.ts'
import { readCodex } from './cli-codex.ts'
import { readGemini } from './cli-gemini.ts'
import { readOpencode } from './cli-opencode.ts'
import { type Format, type Result, type Said } from './cli-said.ts'

/** What an agent may use up. */
export interface Limits {
  readonly turns: number
  /** US dollars; undefined for no limit. */
  readonly cost: number | undefined
}

/** What an agent's lines say so far. */
export interface Reading {
  /** Takes a line of its standard output. */
  take(line: string): void
  /** Why it is to be stopped; undefined while it may go on. */
  hopeless(): string | undefined
  /** The stream is over. */
  end(): Told
}

/** What the whole stream told. */
export interface Told {
  /** Undefined when it did not tell that it had come to an end. */
  readonly result: Result | undefined
  /** The agent's last message. */
  readonly message: string | undefined
  readonly cost: number | null
  readonly turns: number | null
  /** What went wrong last. */
  readonly problem: string | undefined
}

/** One after the other is asked whether it knows a line: agents can be told by their lines. */
const FORMATS: readonly Format[] = [readClaude, readOpencode, readCodex, readGemini]
/** A message in parts that is longer goes on unseen: no line is kept as long as that. */
const MESSAGE_LONGEST = 256 * 1024
/** What an agent counts beyond that is no count, and no column takes it. */
const TURNS_MOST = 2 ** 31 - 1
/** US dollars that no line costs: as many, or less than none, are no price. */
const COST_MOST = 1_000_000

/**
 * Reads an agent's stream; whole lines of it go to `show`. Each text in a line is redacted by itself: in
 * JSON within JSON a secret is escaped twice.
 */
export function createReading(
  limits: Limits,
  redact: (text: string) => string,
  show: (kind: LineKind, text: string) => void,
): Reading {
  let [turns, ownTurns, cost] = [0, 0, 0]
  let speaker: Said['speaker']
  let priced: boolean | undefined
  let result: Result | undefined
  let message: string | undefined
  let parts: string | undefined
  let problem: string | undefined
  let hopeless: string | undefined

  /** Parts are shown when they are a whole message: a secret may be split between two of them. */
  function endParts(): void {
    if (parts === undefined) return
    message = parts
    show('text', parts)
    parts = undefined
  }

  function count(said: Said): void {
    if (said.speaker === 'agent' && speaker !== 'agent') turns++
    speaker = said.speaker ?? speaker
    if (said.cost !== undefined) {
      const known = said.cost !== null && said.cost >= 0 && said.cost < COST_MOST
      priced = known && (priced ?? true)
      cost += known ? said.cost : 0
    }
    if (said.begins === true) result = undefined
    if (said.result !== undefined) {
      result = said.result
      ownTurns += said.result.turns ?? 0
    }
    problem = said.problem ?? problem
    hopeless ??= said.hopeless
    if (turns > limits.turns)
      hopeless ??= `the cap of ${limits.turns} turns (OPS_MAX_TURNS) is reached`
    if (limits.cost !== undefined && cost > limits.cost) {
      hopeless ??= `the budget is spent: $${cost.toFixed(4)} of $${limits.cost.toFixed(4)}`
    }
  }

  return {
    take(line) {
      if (line.trim() === '') return
      const value = parse(line, redact)
      const said = value === undefined ? undefined : knownBy(value)
      if (said?.part === true && said.message !== undefined) {
        const more = (parts ?? '') + said.message
        parts = more.slice(0, MESSAGE_LONGEST)
      } else {
        endParts()
        if (value === undefined) show('text', line)
        else if (said === undefined) show('system', JSON.stringify(value))
        for (const { kind, text } of said?.shown ?? []) show(kind, text)
        const last = said?.result?.ok === true ? said.result.text : undefined
        // Most agents have said their last message before; nothing is to be there twice.
        if (last !== undefined && last !== message) show('text', last)
        message = said?.message ?? message
      }
      if (said !== undefined) count(said)
    },
    hopeless: () => hopeless,
    end() {
      endParts()
      const counts = Number.isInteger(ownTurns) && ownTurns > 0 && ownTurns <= TURNS_MOST
      const counted = counts ? ownTurns : turns
      return {
        ...{ result, problem },
        message: result?.text ?? message,
        cost: priced === true ? cost : null,
        turns: counted > 0 ? counted : null,
      }
    },
  }
}

function knownBy(value: unknown): Said | undefined {
  const line = objectOf(value)
  for (const format of FORMATS) {
    const said = format(line)
    if (said !== undefined) return said
  }
  return undefined
}

/**
 * Undefined for a line that is no JSON, or is nested deeper than can be gone through (a RangeError). A line of
 * digits is text, such as hex: as a number it would lose some.
 */
function parse(line: string, redact: Redact): unknown {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'number' ? undefined : redactDeep(value, redact)
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return undefined
    throw error
  }
}
