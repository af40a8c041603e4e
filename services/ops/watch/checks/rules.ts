import type { Mistake } from './check.ts'
import { CHECK_SCHEMAS, mistakeIn, type Check } from './run.ts'

/**
 * Where a check that was made by hand is wrong, and what is expected there; undefined for a valid
 * one. It may not run a program: pages have no sign-in of their own, and whoever reaches them, or
 * the database, would run programs as the user of Gatehouse.
 */
export function mistakeByHand(given: Readonly<Record<string, unknown>>): Mistake | undefined {
  const { type } = given
  if (type === 'command') {
    return [
      '/type',
      'must not be command: a check that runs a program stands in the inventory file',
    ]
  }
  const { required = [] } = CHECK_SCHEMAS.get(String(type) as Check['type']) ?? {}
  const missing = required.find((member) => given[member] === undefined)
  if (missing !== undefined) return [`/${missing}`, 'is required']
  return mistakeIn(given as Check)
}
