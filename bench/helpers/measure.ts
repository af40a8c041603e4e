/** The middle value; of an even count the lower one of the two in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5)
}

/** The value below which the given part of all values lies. */
export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN
}

/** Milliseconds that a piece of work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  await work()
  return performance.now() - started
}

/** A figure of a report: name, value and, where there is one, the bound that it must keep. */
export interface Figure {
  readonly name: string
  readonly value: number
  readonly unit: string
  readonly bound?: string
  readonly kept?: boolean
}

/** A figure that must not be lower than its bound. */
export function atLeast(name: string, value: number, least: number, unit = ''): Figure {
  return { name, value, unit, bound: `≥ ${least}`, kept: value >= least }
}

/** A figure that must not be higher than its bound. */
export function atMost(name: string, value: number, most: number, unit: string): Figure {
  return { name, value, unit, bound: `≤ ${most}`, kept: value <= most }
}

/** One part of the suite. */
export interface Part {
  readonly name: string
  readonly run: (owner: Owner) => Promise<readonly Figure[]>
}

/** Whose end ends what a part started. */
export interface Owner {
  teardown(end: () => unknown): void
}
