import { spentProblem, type Budgets, type Spent } from './budget.ts'
import { costOf, type Price } from './model-prices.ts'
import type { Usage } from './model-stream.ts'

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
 * escalated to goes on with what its parents left.
 */
export function createSpending(
  price: Price | undefined,
  budgets: Budgets,
  before: Spent,
): Spending {
  let [tokens, cost] = [0, 0]
  return {
    add(usage) {
      tokens += usage.prompt + usage.completion
      if (price !== undefined) cost += costOf(price, usage)
    },
    // Sums of binary fractions have tails that nobody wants to read.
    cost: () => (price === undefined ? null : Math.round(cost * 1e9) / 1e9),
    problem() {
      if (tokens >= TOKENS) return `the session's ${TOKENS} tokens are spent`
      return spentProblem(budgets, before, cost)
    },
  }
}
