import type { Executor } from '../client.ts'
import { many } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Rejection, RejectionTotal } from './rows.ts'

/**
 * Adds refused deliveries; `totals` counts all of them, `rows` may be only the newest, `minutes`
 * counts those that were refused for their signature or token.
 */
export async function saveRejections(
  db: Executor,
  rows: readonly Omit<Rejection, 'id'>[],
  totals: readonly { provider: string; status: number; total: number; last_at: Date }[],
  minutes: readonly { provider: string; minute: Date; refused: number }[],
): Promise<void> {
  await db.run(q.saveRejections, [rows, totals, minutes])
}

/** Refused deliveries below an id, newest first, of one provider or all (null). */
export function listRejections(
  db: Executor,
  below: number | null,
  provider: string | null,
  limit: number,
): Promise<readonly Rejection[]> {
  return many(db, q.listRejections, [below ?? Number.MAX_SAFE_INTEGER, provider, limit])
}

export function listRejectionTotals(db: Executor): Promise<readonly RejectionTotal[]> {
  return many(db, q.listRejectionTotals, [])
}
