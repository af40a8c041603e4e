import type { Session } from '../../../db/ops/sessions.ts'
import type { Config } from '../config.ts'
import type { Output } from '../sessions/output.ts'

/** One session as a runner sees it. */
export interface Job {
  readonly session: Pick<
    Session,
    'id' | 'tier' | 'model' | 'trigger' | 'prompt_text' | 'started_at'
  >
  /** Stands in the environment of every process that is started for it. */
  readonly marker: string
  readonly config: Config
  readonly output: Output
  /** Aborted when the session is to end: stopped, out of time, escalated or no longer ours. */
  readonly signal: AbortSignal
  /** Notes that the agent is alive: without it the session counts as idle. */
  readonly alive: () => void
  /** Ends the session as escalated; the next tier gets the findings. The signal is aborted by it. */
  readonly escalate: (reason: string, findings: string) => void
}

/** What came of a session. A runner that is aborted still tells what it has cost. */
export interface Outcome {
  readonly status: 'completed' | 'failed'
  /** What was found, for people; null when the session did not come so far. */
  readonly summary: string | null
  /** Why it failed, in one line; null when it did not. */
  readonly problem: string | null
  readonly cost_usd: number | null
  readonly num_turns: number | null
  /** The exit code of a process of its own; null when the status decides it. */
  readonly exit_code: number | null
}

/** What came of a session that failed before it had cost anything. */
export function failedOutcome(problem: string): Outcome {
  const nothing = { summary: null, cost_usd: null, num_turns: null, exit_code: null }
  return { status: 'failed', problem, ...nothing }
}

/** A way to run sessions (decisions.md section 5, Runners). */
export interface Runner {
  readonly name: 'probe' | 'model' | 'cli'
  /** The model's name that a session of a tier shows. */
  readonly modelOf: (config: Config, tier: number) => string
  /** Runs a session to its end; rejects for a bug, or without a database (`Unavailable`). */
  readonly run: (job: Job) => Promise<Outcome>
}

/** The model that is configured for a tier. */
export function tierModel(config: Config, tier: number): string {
  return tier === 1 ? config.tier1_model : tier === 2 ? config.tier2_model : config.tier3_model
}
