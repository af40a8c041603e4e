import type { Executor } from '../client.ts'
import { many } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Rejection, RejectionTotal } from './rows.ts'

/** Refused deliveries that one process counted; it numbers its batches upwards. */
export interface RejectionBatch {
  readonly writer: string
  readonly number: number
  /** The newest of them. */
  readonly rows: readonly Omit<Rejection, 'id'>[]
  /** All of them, counted. */
  readonly totals: readonly { provider: string; status: number; total: number; last_at: Date }[]
  /** Those that were refused for their signature or token. */
  readonly minutes: readonly { provider: string; minute: Date; refused: number }[]
}

/** Adds refused deliveries to what is counted already, a batch once. */
export async function saveRejections(
  db: Executor,
  { writer, number, rows, totals, minutes }: RejectionBatch,
  at: Date,
): Promise<void> {
  await db.run(q.saveRejections, [rows, totals, minutes, writer, number, at])
}

/** Forgets which processes have written rejections last before a time. */
export async function forgetRejectionWriters(db: Executor, before: Date): Promise<void> {
  await db.run(q.forgetRejectionWriters, [before])
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
