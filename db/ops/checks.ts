import type { Executor } from '../client.ts'
import { many } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { CheckBefore, CheckState } from './rows.ts'

/** Notes how checks went, and gives how those went before that are not new. */
export function saveCheckStates(
  db: Executor,
  states: readonly CheckState[],
  at: Date,
): Promise<readonly CheckBefore[]> {
  return many(db, q.saveCheckStates, [states, at])
}

/** Notes the event whose notice tells that a check fails; null when its end is told. */
export async function noteTold(
  db: Executor,
  { service, name }: Pick<CheckState, 'service' | 'name'>,
  event: number | null,
): Promise<void> {
  await db.run(q.noteTold, [service, name, event])
}
