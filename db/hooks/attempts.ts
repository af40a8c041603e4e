import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Attempt } from './rows.ts'

/** Records that an event was sent on; false when retention removed the event meanwhile. */
export async function saveAttempt(
  db: Executor,
  eventId: number,
  attempt: Omit<Attempt, 'id'>,
): Promise<boolean> {
  const { kind, target, outcome, status, ms, detail, at } = attempt
  const args = [eventId, kind, target, outcome, status, ms, detail, at]
  return (await optional(db, q.saveAttempt, args)) !== undefined
}

/** The newest attempts of an event, newest first. */
export function listAttempts(
  db: Executor,
  eventId: number,
  limit: number,
): Promise<readonly Attempt[]> {
  return many(db, q.listAttempts, [eventId, limit])
}
