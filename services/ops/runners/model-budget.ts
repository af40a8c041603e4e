import type { Database } from '../../../db/client.ts'
import { chainCost, costSince } from '../../../db/ops/sessions.ts'
import { costOf, type Price } from './model-prices.ts'
import type { Usage } from './model-stream.ts'

/** What may be spent, in US dollars; undefined for no limit. */
export interface Budgets {
  readonly session: number | undefined
  readonly day: number | undefined
}

/** What a session spends, against its budgets. */
export interface Spending {
  add(usage: Usage): void
  /** Of this session; null without a price. */
  cost(): number | null
  /** Which budget is spent, in one line; undefined while there is some left. */
  problem(): string | undefined
}

/** Tokens of a session, whatever they cost: what bounds a model without a price. */
const TOKENS = 2_000_000

/**
 * Counts what a session spends. The session's budget covers its whole escalation chain: a tier that was
 * escalated to goes on with what its parents left. The day is the present one, in UTC.
 */
export async function openSpending(
  db: Database,
  session: number,
  price: Price | undefined,
  budgets: Budgets,
  now: Date,
): Promise<Spending> {
  const midnight = new Date(now)
  midnight.setUTCHours(0, 0, 0, 0)
  // This session's own row has no cost before it ends.
  const [chain, day] = await Promise.all([chainCost(db, session), costSince(db, midnight)])
  let [tokens, cost] = [0, 0]

  function over(before: number, most: number | undefined): boolean {
    return most !== undefined && before + cost >= most
  }
  function spent(name: string, variable: string, before: number, most = 0): string {
    return `the ${name} of $${most} (${variable}) is spent: $${(before + cost).toFixed(4)}`
  }
  return {
    add(usage) {
      tokens += usage.prompt + usage.completion
      if (price !== undefined) cost += costOf(price, usage)
    },
    // Sums of binary fractions have tails that nobody wants to read.
    cost: () => (price === undefined ? null : Math.round(cost * 1e9) / 1e9),
    problem() {
      if (tokens >= TOKENS) return `the session's ${TOKENS} tokens are spent`
      if (over(chain, budgets.session)) {
        const name = chain > 0 ? 'budget of the escalation chain' : 'budget of the session'
        return spent(name, 'OPS_SESSION_BUDGET_USD', chain, budgets.session)
      }
      if (!over(day, budgets.day)) return undefined
      return spent('budget of the day', 'OPS_DAY_BUDGET_USD', day, budgets.day)
    },
  }
}
