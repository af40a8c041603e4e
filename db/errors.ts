import postgres from 'postgres'
import { codeOf, messageOf } from '../kernel/log.ts'
import { Unavailable } from '../kernel/fault.ts'

/** A statement that the database refused. `constraint` names the violated one. */
export class QueryError extends Error {
  override name = 'QueryError'
  code: string
  constraint: string | undefined

  constructor(message: string, code: string, constraint: string | undefined, cause: unknown) {
    super(message, { cause })
    this.code = code
    this.constraint = constraint
  }
}

/**
 * A lost connection, or a server that starts, stops or takes no changes: the caller may retry
 * later.
 */
const UNAVAILABLE =
  /^(08|57P|53[0123]|25006|55P03|57014|CONNECT|ECONN|ENOENT|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN)/

/** No space, or no changes because of that or on a standby. Reads still work. */
const FULL = /^(53100|25006)$/
const NO_CHANGES = 'the database takes no changes: its disk is nearly full, or it is a standby'

/** Whether a change failed because there is no space or the server is read-only. */
export function isFull(error: unknown): boolean {
  return FULL.test(codeOf(error) ?? '')
}

/**
 * Turns an error of the named query into `Unavailable` or `QueryError`; returns others unchanged.
 */
export function translate(name: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Unavailable || error instanceof QueryError)
    return error
  const code = codeOf(error) ?? ''
  // "cannot execute INSERT in a read-only transaction" does not tell an operator what to look at.
  const reason = code === '25006' ? NO_CHANGES : messageOf(error)
  const message = `${name}: ${reason}`
  if (UNAVAILABLE.test(code)) return new Unavailable(message, { cause: error })
  if (code === '') return error
  const constraint = error instanceof postgres.PostgresError ? error.constraint_name : undefined
  return new QueryError(message, code, constraint, error)
}
