/** What a session may take, or may still take. */
export interface Allowance {
  /** Answers of the model, each with all tools that it calls. */
  turns: number
  /** US dollars; Infinity without a budget. */
  dollars: number
}

/** The longest run of a session by its tier, in milliseconds (decisions.md section 5). */
export const MAX_RUN_MS: Readonly<Record<number, number>> = {
  1: 600_000,
  2: 1_200_000,
  3: 1_800_000,
}

/** From here on a model is told at each turn what is left. */
const FEW_TURNS = 5
const LITTLE_MONEY = 0.2

/** What a session may take, for the beginning of its prompt. */
export function describeAllowance(tier: number, { turns, dollars }: Allowance): string {
  const minutes = (MAX_RUN_MS[tier] ?? 0) / 60_000
  const cost = dollars === Infinity ? '' : ` and may cost $${dollars.toFixed(2)}`
  return (
    `You have ${turns} turns; a turn is one answer of yours with all the tools that it calls. ` +
    `The session ends after ${minutes} minutes${cost}. What you have not written by then is lost.`
  )
}

/** Tells a model that little is left; undefined while there is enough. */
export function describeShortage(left: Allowance, whole: Allowance): string | undefined {
  const isShort = left.turns <= FEW_TURNS || left.dollars < whole.dollars * LITTLE_MONEY
  if (!isShort) return undefined
  if (left.turns <= 1) return 'This is your last turn: write the summary now, and call no tool.'
  const money = left.dollars === Infinity ? '' : ` and $${Math.max(0, left.dollars).toFixed(4)}`
  return `${left.turns} turns${money} are left: record what matters, then write the summary.`
}
