import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Alert, AlertOutcome } from './rows.ts'

/** A delivery to the alert webhook. */
export interface NewAlert extends Pick<
  Alert,
  'fingerprint' | 'source' | 'title' | 'payload' | 'outcome'
> {
  readonly at: Date
}

/** Keeps a delivery, and gives the id of the alert that it is of. */
export async function saveAlert(db: Executor, alert: NewAlert): Promise<number> {
  const { fingerprint, source, title, payload, at, outcome } = alert
  const values = [fingerprint, source, title, payload, at, outcome]
  return (await one<{ readonly id: number }>(db, q.saveAlert, values)).id
}

/** Notes what came of the newest delivery of an alert. */
export async function noteAlert(
  db: Executor,
  id: number,
  outcome: AlertOutcome,
  { problem = null, session = null }: { problem?: string | null; session?: number | null } = {},
): Promise<void> {
  await db.run(q.noteAlert, [id, outcome, problem, session])
}

/** Of a delivery, so many characters are listed: a page of whole ones could take all memory. */
export const LISTED_PAYLOAD = 20_000

/** Alerts, the one that was delivered last first, each with the beginning of its delivery. */
export function listAlerts(db: Executor, offset: number, limit: number): Promise<readonly Alert[]> {
  return many(db, q.listAlerts, [offset, limit, LISTED_PAYLOAD])
}

export function findAlert(db: Executor, id: number): Promise<Alert | undefined> {
  return optional(db, q.findAlert, [id])
}
