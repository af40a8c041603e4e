import type { Executor } from '../client.ts'
import { many, one } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Cooldown } from './rows.ts'

/** An operation that is admitted. */
export interface NewAction {
  readonly session_id: number | null
  readonly service: string
  readonly action_type: string
  readonly operation: string
  readonly at: Date
}

const MOST = 1_000

/** What was done since a time, by service and kind of action. */
export function listCooldowns(db: Executor, since: Date): Promise<readonly Cooldown[]> {
  return many(db, q.listCooldowns, [since, MOST])
}

/** Waits until no other transaction admits an operation. */
export async function takeActionTurn(tx: Executor): Promise<void> {
  await tx.run(q.takeActionTurn, [])
}

/** How often a kind of action was done to a service between two times: after the clock was set back, some are of the future. */
export async function countActions(
  tx: Executor,
  service: string,
  actionType: string,
  since: Date,
  now: Date,
): Promise<number> {
  const row = await one<{ readonly count: number }>(tx, q.countActions, [
    service,
    actionType,
    since,
    now,
  ])
  return row.count
}

/** The id of the action, under which its outcome is noted. */
export async function addAction(tx: Executor, action: NewAction): Promise<number> {
  const { session_id, service, action_type, operation, at } = action
  const values = [session_id, service, action_type, operation, at]
  return (await one<{ readonly id: number }>(tx, q.addAction, values)).id
}

/** Notes what came of an action, in one line. */
export async function finishAction(db: Executor, id: number, outcome: string): Promise<void> {
  await db.run(q.finishAction, [id, outcome])
}

/** The operations of a session that run, or whose end nobody was left to note. */
export async function listOpenActions(db: Executor, session: number): Promise<readonly number[]> {
  const rows = await many<{ readonly id: number }>(db, q.listOpenActions, [session, MOST])
  return rows.map(({ id }) => id)
}

/** Notes what came of those, in one line. */
export async function endActions(db: Executor, session: number, outcome: string): Promise<void> {
  await db.run(q.endActions, [session, outcome])
}
