import * as Type from '../../../../kernel/schema.ts'
import type { Database, Executor } from '../../../../db/client.ts'
import { sessionQueries as q } from '../../../../db/ops/agent/sessions.ts'
import type { Log } from '../../../../kernel/log.ts'
import { firstMismatch, fits } from '../../../../kernel/validate.ts'
import { followJsonFile, type FileKind } from '../../watch/inventory/json-file.ts'
import type { Usage } from './model-reply.ts'

const Amount = Type.Number({ minimum: 0 })
const Price = Type.Object(
  {
    input: Amount,
    output: Amount,
    /** Input that the endpoint had in its cache; like `input` if absent. */
    cached_input: Type.Optional(Amount),
  },
  { additionalProperties: false },
)
/** What a model costs, in US dollars per million tokens. */
export type Price = Type.Static<typeof Price>

/** Prices by the name of the model. */
const Prices = Type.Record(Price)
type Prices = Type.Static<typeof Prices>

/** The price table; read again when its file has changed. */
export type PriceSource = Awaited<ReturnType<typeof openPrices>>

/** The file that `OPS_PRICES` names. */
export const PRICES_FILE: FileKind<Prices> = { what: 'Price table', read: readPrices }

/** What may be spent, in US dollars; undefined for no limit. */
export interface Budgets {
  /** By a session and the rest of its escalation chain. */
  session: number | undefined
  /** On the current day (UTC), also by alert briefs. */
  day: number | undefined
}

/** What was spent before a session, in US dollars. */
export type Spent = Awaited<ReturnType<typeof spentBefore>>

/** Tokens of a session, whatever they cost: the bound of a model without a price. */
const MAX_TOKENS = 2_000_000

/** Throws if the price table can't be read, or is wrong, when it is read for the first time. */
export async function openPrices(file: () => string | undefined, log: Log) {
  const current = await followJsonFile(PRICES_FILE, file, log)
  return {
    /** Undefined for a model that the table does not name. */
    async of(model: string): Promise<Price | undefined> {
      const prices = (await current()) ?? {}
      return Object.hasOwn(prices, model) ? prices[model] : undefined
    },
  }
}

function readPrices(value: unknown): Prices {
  if (fits(Prices, value)) return value
  throw new SyntaxError(`is wrong: ${firstMismatch(Prices, value, 'its top')}`)
}

/** The cost of tokens, in US dollars. */
export function costOf(price: Price, { prompt, cached, completion }: Usage): number {
  const fresh = (prompt - cached) * price.input + cached * (price.cached_input ?? price.input)
  return (fresh + completion * price.output) / 1_000_000
}

/** Reads what counts against the budgets of a session that has cost nothing yet. */
export async function spentBefore(db: Database, id: number, now: Date) {
  const [{ cost_usd: chain }, day] = await Promise.all([
    q.chainCost(db, { id }),
    spentToday(db, now),
  ])
  return { chain, day }
}

/** US dollars that sessions and alert briefs have cost on the current day (UTC). */
export async function spentToday(db: Executor, now: Date): Promise<number> {
  const since = new Date(now)
  since.setUTCHours(0, 0, 0, 0)
  return (await q.costSince(db, { since })).cost_usd
}

/**
 * Which budget is spent, in one line, once a session has cost that much; undefined while some is
 * left.
 */
export function spentProblem(budgets: Budgets, before: Spent, cost: number): string | undefined {
  const { session = Infinity, day = Infinity } = budgets
  const chain = before.chain + cost
  const today = before.day + cost
  if (chain >= session) {
    const name = before.chain > 0 ? 'escalation chain' : 'session'
    return budgetProblem(name, 'OPS_SESSION_BUDGET_USD', session, chain)
  }
  return today < day ? undefined : budgetProblem('day', 'OPS_DAY_BUDGET_USD', day, today)
}

function budgetProblem(name: string, variable: string, budget: number, spent: number): string {
  return `the budget of the ${name} of $${budget} (${variable}) is spent: $${spent.toFixed(4)}`
}

/** US dollars that a session may cost; Infinity for no limit. */
export function budgetLeft(budgets: Budgets, before: Spent): number {
  const { session = Infinity, day = Infinity } = budgets
  return Math.min(session - before.chain, day - before.day)
}

/**
 * Counts what a session spends. Its budget covers the whole chain: a next tier gets what its
 * parents left.
 */
export function createSpending(
  price: Price | undefined,
  { budgets, spent }: { budgets: Budgets; spent: Spent },
) {
  let tokens = 0
  let cost = 0
  return {
    tokens: () => tokens,
    add(usage: Usage): void {
      tokens += usage.prompt + usage.completion
      if (price !== undefined) cost += costOf(price, usage)
    },
    /**
     * The cost of this session, without the long tail of a sum of fractions; null without a price.
     */
    cost: (): number | null => (price === undefined ? null : Math.round(cost * 1e9) / 1e9),
    /** Which budget is spent, in one line; undefined while some is left. */
    problem(): string | undefined {
      if (tokens >= MAX_TOKENS) return `the session's ${MAX_TOKENS} tokens are spent`
      return spentProblem(budgets, spent, cost)
    },
  }
}
