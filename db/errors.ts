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

/** No answer came within the deadline of a statement. */
export class NoAnswer extends Error {
  override name = 'NoAnswer'
}

export type Backend = 'embedded' | 'postgresql'

/** The connection broke, or the server ends it: it starts, stops, or has crashed. */
const GONE = /^(08|57P|CONNECT|ECONN|ENOENT|EPIPE|ETIMEDOUT|EHOST|ENET|EAI_AGAIN)/

/** Read-only: the server is a standby, or has become one. The embedded engine has no space. */
const READ_ONLY = '25006'

/**
 * Answers of a database that works and can't do it now: no resources, a lock that is not free, a
 * statement over its time, no changes.
 */
const BUSY = /^(53[0123]|55P03|57014|25006)/

/** What PgBouncer says of session settings that it was not told to let pass. */
const REFUSED_SETTING = /^unsupported startup parameter/

/** No space, or no changes because of that or on a standby. Reads still work. */
const FULL = /^(53100|25006)$/
const NO_CHANGES = 'the database takes no changes: its disk is nearly full, or it is a standby'

/** PostgreSQL ended the statement: by its time, or because it was asked to. */
const CANCELED = '57014'

/** Whether a change failed because there is no space or the server is read-only. */
export function isFull(error: unknown): boolean {
  return FULL.test(codeOf(error) ?? '')
}

/** Whether a translated error says that a statement was ended before it was done. */
export function wasCanceled(error: unknown): boolean {
  return error instanceof Unavailable && codeOf(error.cause) === CANCELED
}

/**
 * What an error of a statement makes of its connection:
 *
 * - `kept`: PostgreSQL has answered, and takes the next statement.
 * - `late`: the embedded engine still works on it. The next statement waits until it has answered.
 * - `lost`: the connection is gone or in doubt, so nothing more may be sent on it. A read-only server
 *   counts as lost, too: another one may be the leader by now.
 */
export function stateAfter(error: unknown, backend: Backend): 'kept' | 'late' | 'lost' {
  if (error instanceof NoAnswer) return backend === 'embedded' ? 'late' : 'lost'
  if (!(error instanceof postgres.PostgresError) || GONE.test(error.code)) return 'lost'
  if (backend === 'embedded') return 'kept'
  // After a fatal error the server closes the connection, such as 53300 (too many connections) or
  // an unknown user.
  return error.code === READ_ONLY || error.severity === 'FATAL' ? 'lost' : 'kept'
}

/**
 * Turns an error of the named query into `Unavailable`, where the caller may retry later, or into
 * `QueryError`; returns others unchanged.
 */
export function translate(name: string, error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Unavailable || error instanceof QueryError)
    return error
  const code = codeOf(error) ?? ''
  // "cannot execute INSERT in a read-only transaction" does not tell an operator what to look at.
  const reason = code === READ_ONLY ? NO_CHANGES : describeError(error)
  const message = `${name}: ${reason}`
  if (error instanceof NoAnswer || GONE.test(code) || BUSY.test(code)) {
    return new Unavailable(message, { cause: error })
  }
  if (code === '') return error
  const constraint = error instanceof postgres.PostgresError ? error.constraint_name : undefined
  return new QueryError(message, code, constraint, error)
}

/** The message of a driver's error, with what helps where that is known. */
export function describeError(error: unknown): string {
  const message = messageOf(error)
  if (!REFUSED_SETTING.test(message)) return message
  return `${message} (PgBouncer needs ignore_startup_parameters, see docs/cluster.md)`
}
