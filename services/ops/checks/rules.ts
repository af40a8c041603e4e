import { fits, mismatchOf } from '../../../kernel/validate.ts'
import { everySeconds } from './check.ts'
import { CHECK_SCHEMAS, type Check } from './run.ts'

// What a check must be, wherever its definition comes from: the inventory file, the command line,
// a form or the API.

/** A check must not load what it looks at; one that looks less than daily sees nothing. */
const MIN_EVERY_S = 10
const MAX_EVERY_S = 86_400

/** What is wrong with a check, and where in it, such as `/every`; empty for the whole. */
export interface Mismatch {
  path: string
  message: string
}

/** The first thing that is wrong with a check; undefined for a valid one. */
export function mismatchOfCheck(given: Readonly<Record<string, unknown>>): Mismatch | undefined {
  const schema = CHECK_SCHEMAS.get(String(given['type']) as Check['type'])
  if (schema === undefined) {
    const message = `must be one of ${[...CHECK_SCHEMAS.keys()].join(', ')}`
    return { path: '/type', message }
  }
  if (!fits(schema, given)) return mismatchOf(schema, given)
  const check = given as Check
  const seconds = everySeconds(check)
  if (seconds < MIN_EVERY_S || seconds > MAX_EVERY_S) {
    return { path: '/every', message: 'must be 10s to 24h' }
  }
  if (check.type === 'http' && !isPlainUrl(check.url)) {
    return { path: '/url', message: 'must be a URL without user and password' }
  }
  // It would pass for any process.
  if (check.type === 'process' && check.match === undefined && check.program === undefined) {
    return { path: '', message: 'must have match or program' }
  }
  return undefined
}

/**
 * The same for one that was made by hand. It may not run a program: pages have no sign-in of their
 * own, and whoever reaches them, or the database, would run programs as the user of Gatehouse.
 */
export function mismatchByHand(given: Readonly<Record<string, unknown>>): Mismatch | undefined {
  const { type } = given
  if (type !== 'command') {
    const { required = [] } = CHECK_SCHEMAS.get(String(type) as Check['type']) ?? {}
    const missing = required.find((member) => given[member] === undefined)
    if (missing !== undefined) return { path: `/${missing}`, message: 'is required' }
    return mismatchOfCheck(given)
  }
  const message = 'must not be command: a check that runs a program stands in the inventory file'
  return { path: '/type', message }
}

/** `fetch` refuses a URL with a password, and events would quote it. */
function isPlainUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && url.username === '' && url.password === ''
}
