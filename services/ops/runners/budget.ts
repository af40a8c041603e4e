import type { Database } from '../../../db/client.ts'
import { chainCost, costSince } from '../../../db/ops/sessions.ts'

/** What may be spent, in US dollars; undefined for no limit. */
export interface Budgets {
  /** By a session and the chain of escalations that it stands in. */
  readonly session: number | undefined
  /** On the present day, in UTC, also by briefs of alerts. */
  readonly day: number | undefined
}

/** What was spent before a session, in US dollars. */
export interface Spent {
  readonly chain: number
  readonly day: number
}

/** Reads what counts against the budgets of a session: its own row has no cost before it ends. */
export async function spentBefore(db: Database, session: number, now: Date): Promise<Spent> {
  const [chain, day] = await Promise.all([chainCost(db, session), spentToday(db, now)])
  return { chain, day }
}

/** US dollars that sessions and briefs of alerts have cost on the present day, in UTC. */
export function spentToday(db: Database, now: Date): Promise<number> {
  const midnight = new Date(now)
  midnight.setUTCHours(0, 0, 0, 0)
  return costSince(db, midnight)
}

/** Which budget is spent, in one line, once the session has cost so much; undefined while some is left. */
export function spentProblem(budgets: Budgets, before: Spent, cost: number): string | undefined {
  const { session, day } = budgets
  if (session !== undefined && before.chain + cost >= session) {
    const name = before.chain > 0 ? 'budget of the escalation chain' : 'budget of the session'
    return problemOf(name, 'OPS_SESSION_BUDGET_USD', before.chain + cost, session)
  }
  if (day === undefined || before.day + cost < day) return undefined
  return problemOf('budget of the day', 'OPS_DAY_BUDGET_USD', before.day + cost, day)
}

/** US dollars that a session may cost; undefined for no limit. */
export function budgetLeft({ session, day }: Budgets, before: Spent): number | undefined {
  const left = [
    ...(session === undefined ? [] : [session - before.chain]),
    ...(day === undefined ? [] : [day - before.day]),
  ]
  return left.length === 0 ? undefined : Math.min(...left)
}

function problemOf(name: string, variable: string, spent: number, most: number): string {
  return `the ${name} of $${most} (${variable}) is spent: $${spent.toFixed(4)}`
}
