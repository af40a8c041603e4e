import type { Session } from '../../../db/ops/sessions.ts'
import type { Config } from '../config.ts'
import type { Output } from '../sessions/output.ts'

/** A session as its runner sees it. */
export interface Job {
  readonly session: Pick<
    Session,
    'id' | 'tier' | 'model' | 'trigger' | 'prompt_text' | 'started_at'
  >
  /** In the environment of every process that is started for the session. */
  readonly marker: string
  readonly config: Config
  readonly output: Output
  /** Aborted when the session must end: it is stopped, timed out, escalated or lost. */
  readonly signal: AbortSignal
  /** Notes a sign of life that is not output: a silent session times out. */
  readonly noteActivity: () => void
  /**
   * Ends the session as escalated; the next tier gets the findings. The signal is aborted by it.
   */
  readonly escalate: (reason: string, findings: string) => void
}

/** What came of a session. A runner that is aborted still reports the cost. */
export interface Outcome {
  /** What was found, for people; null if the session did not get that far. */
  readonly summary: string | null
  /** Why it failed, in one line; null if it did not. */
  readonly problem: string | null
  readonly cost_usd: number | null
  readonly num_turns: number | null
  /** The exit code of an agent's process; null if the status decides it. */
  readonly exit_code: number | null
}

/** The outcome of a session that failed before it had cost anything. */
export function failedOutcome(problem: string): Outcome {
  return { problem, summary: null, cost_usd: null, num_turns: null, exit_code: null }
}

/** A way to run sessions (decisions.md section 5, Runners). */
export interface Runner {
  readonly name: 'probe' | 'model' | 'cli'
  /** The name of the model that sessions of a tier show. */
  readonly modelOf: (config: Config, tier: number) => string
  /** Runs a session to its end; rejects for a bug, or if the database is `Unavailable`. */
  readonly run: (job: Job) => Promise<Outcome>
}

export function tierModel(config: Config, tier: number): string {
  return tier === 1 ? config.tier1_model : tier === 2 ? config.tier2_model : config.tier3_model
}
