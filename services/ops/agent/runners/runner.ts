import type { Ending, Session } from '../../../../db/ops/agent/sessions.ts'
import type { Config } from '../../config.ts'
import type { Output } from '../sessions/output.ts'

/** A session as its runner sees it. */
export interface Job {
  session: Pick<Session, 'id' | 'tier' | 'model' | 'trigger' | 'prompt_text'>
  /** The process that runs it, as its row names it. */
  holder: string
  /** In the environment of every process that is started for the session. */
  marker: string
  config: Config
  output: Output
  /** Aborted when the session must end: it is stopped, timed out, escalated or lost. */
  signal: AbortSignal
  /** Notes a sign of life that is not output: a silent session times out. */
  noteActivity: () => void
  /** Notes what the session has cost so far, in US dollars; null if that is not known. */
  noteCost: (cost_usd: number | null) => void
  /**
   * Ends the session as escalated; the next tier gets the findings. The signal is aborted by it.
   */
  escalate: (reason: string, findings: string) => void
}

/**
 * What came of a session. A runner that is aborted still reports the cost. The exit code is that
 * of an agent's process; null if the status decides it.
 */
export interface Outcome extends Omit<Ending, 'status'> {
  /** Why it failed, in one line; null if it did not. */
  problem: string | null
}

/** The outcome of a session that has cost nothing, and of which there is nothing to say. */
export const NO_OUTCOME: Outcome = {
  summary: null,
  problem: null,
  cost_usd: null,
  num_turns: null,
  tool_calls: null,
  exit_code: null,
}

/** What a turn took; null if unknown. */
export interface TurnCost {
  tokens: number | null
  /** US dollars. */
  cost: number | null
}

/** The line that ends a turn, such as `Turn 3: 1,204 tokens, $0.0021`. */
export function turnText(turn: number, { tokens, cost }: TurnCost): string {
  const known = [
    tokens !== null && `${tokens.toLocaleString('en')} tokens`,
    // Six decimal places without the zeros at their end.
    cost !== null && `$${Number(cost.toFixed(6))}`,
  ].filter((part) => part !== false)
  return known.length === 0 ? `Turn ${turn}` : `Turn ${turn}: ${known.join(', ')}`
}

/** The outcome of a session that failed before it had cost anything. */
export function failedOutcome(problem: string): Outcome {
  return { ...NO_OUTCOME, problem }
}

/** A way to run sessions (decisions.md section 5, Runners). */
export interface Runner {
  /** The name of the model that sessions of a tier show. */
  modelOf: (config: Config, tier: number) => string
  /** Runs a session to its end; rejects for a bug, or if the database is `Unavailable`. */
  run: (job: Job) => Promise<Outcome>
}

export function tierModel(config: Config, tier: number): string {
  if (tier === 1) return config.tier1_model
  return tier === 2 ? config.tier2_model : config.tier3_model
}
