import type { Database } from '../../../db/client.ts'
import type { Clock } from '../../../kernel/clock.ts'
import type { Log } from '../../../kernel/log.ts'
import type { Runner } from './runner.ts'

/** What a probe looks with. */
export interface ProbeOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  /** Where each running service listens. */
  readonly addresses: () => ReadonlyMap<string, string>
}

/** The runner without a model. */
export function createProbe(_options: ProbeOptions): Runner {
  return {
    name: 'probe',
    modelOf: () => 'none',
    async run(job) {
      job.output.write('text', 'Nothing to look at.\n')
      return {
        ...{ status: 'completed', summary: 'Nothing to look at.', problem: null },
        ...{ cost_usd: null, num_turns: null, exit_code: null },
      }
    },
  }
}
