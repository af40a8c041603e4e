import type { Executor } from '../client.ts'
import { many } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { CheckState } from './rows.ts'

/** Notes how checks went, and gives how those went before that are not new. */
export function saveCheckStates(
  db: Executor,
  states: readonly CheckState[],
  at: Date,
): Promise<readonly CheckState[]> {
  return many(db, q.saveCheckStates, [states, at])
}
