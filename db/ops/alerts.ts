import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { AdoptedAlert, Alert, AlertOutcome, AlertText, UnreadAlert } from './rows.ts'

/** A process of Gatehouse, as sessions name their holder. */
export interface Reader {
  readonly holder: string
  readonly machine: string
}

/** A delivery to the alert webhook. */
export interface NewAlert extends Pick<
  Alert,
  'fingerprint' | 'source' | 'title' | 'payload' | 'outcome'
> {
  /** Tells its text from other texts of the same alert. */
  readonly content: string
  readonly at: Date
  readonly tier: number
}

/** A delivery of an alert, by its number. */
export interface Delivery {
  readonly id: number
  readonly count: number
}

/** Keeps a delivery, and gives the alert that it is of. */
export function saveAlert(db: Executor, alert: NewAlert, reader: Reader): Promise<Delivery> {
  const { fingerprint, source, content, title, payload, at, outcome, tier } = alert
  const { holder, machine } = reader
  const text = [fingerprint, source, content, title, payload]
  return one(db, q.saveAlert, [...text, at, outcome, tier, holder, machine])
}

/** Notes what came of a delivery of an alert. */
export async function noteAlert(
  db: Executor,
  { id, count }: Delivery,
  outcome: AlertOutcome,
  { problem = null, session = null }: { problem?: string | null; session?: number | null } = {},
): Promise<void> {
  await db.run(q.noteAlert, [id, count, outcome, problem, session])
}

/** Alerts whose newest delivery is being read, by any process. */
export function listUnread(db: Executor, limit: number): Promise<readonly UnreadAlert[]> {
  return many(db, q.listUnread, [limit])
}

/** The newest delivery of such an alert, in place of its reader; undefined when that was done already. */
export function adoptAlert(
  db: Executor,
  { id, reading_since }: UnreadAlert,
  { holder, machine }: Reader,
  at: Date,
): Promise<AdoptedAlert | undefined> {
  return optional(db, q.adoptAlert, [id, reading_since, at, holder, machine])
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

/** The texts of an alert, the one that came last first, each with its beginning. */
export function listAlertTexts(
  db: Executor,
  id: number,
  offset: number,
  limit: number,
): Promise<readonly AlertText[]> {
  return many(db, q.listAlertTexts, [id, offset, limit, LISTED_PAYLOAD])
}
