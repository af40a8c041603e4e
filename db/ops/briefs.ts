import type { Executor } from '../client.ts'
import { optional } from '../rows.ts'
import type { Reader } from './alerts.ts'
import { opsQueries as q } from './queries.ts'

/** True when a process has the turn to have a brief written, until a time; false while another one has it. */
export async function takeBrief(
  db: Executor,
  { holder, machine }: Reader,
  now: Date,
  until: Date,
): Promise<boolean> {
  return (await optional(db, q.takeBrief, [holder, machine, now, until])) !== undefined
}

/** Gives up the turn of a process. */
export async function freeBrief(db: Executor, { holder, machine }: Reader): Promise<void> {
  await db.run(q.freeBrief, [holder, machine])
}

/** Counts what a brief cost, in US dollars, against the budget of the day. */
export async function addBriefCost(db: Executor, at: Date, cost: number): Promise<void> {
  await db.run(q.addBriefCost, [at, cost])
}
