import { http } from './http/node-http.ts'

interface FaultOptions {
  /** The input that is wrong. */
  field?: string
  /** The messages of all inputs that are wrong, by their names. */
  fields?: Readonly<Record<string, string>>
  /** What to do about it, for a contract that says it apart from the message. */
  advice?: string
  /** Headers of the reply. */
  headers?: Readonly<Record<string, string>>
}

/**
 * An expected failure of a request. Thrown where it is found; each service turns it into a reply
 * in one place, in the error shape of its contract. `code` is an UPPER_SNAKE term for programs,
 * `message` one line for people, never a secret. A throw rolls back the transaction it leaves.
 */
export class Fault extends Error {
  override name = 'Fault'
  status: number
  code: string
  field: string | undefined
  fields: Readonly<Record<string, string>>
  advice: string | undefined
  headers: Readonly<Record<string, string>>

  constructor(
    status: number,
    code: string,
    message: string,
    { field, fields, advice, headers = {} }: FaultOptions = {},
  ) {
    super(message)
    this.status = status
    this.code = code
    this.field = field
    this.fields = fields ?? (field === undefined ? {} : { [field]: message })
    this.advice = advice
    this.headers = headers
  }

  /** The name of the status, such as `Not Found`. */
  get title(): string {
    return http.STATUS_CODES[this.status] ?? 'Error'
  }
}

/** 400 for an input; `field` names it. */
export function badRequest(message: string, field?: string): Fault {
  return new Fault(400, 'BAD_REQUEST', message, field === undefined ? {} : { field })
}

/** 403: the caller is known, and may not. */
export function forbidden(message: string): Fault {
  return new Fault(403, 'FORBIDDEN', message)
}

/** 404 for what does not exist, or what the caller may not see. */
export function notFound(message: string): Fault {
  return new Fault(404, 'NOT_FOUND', message)
}

/** The reply to a path that no route has, where a service has no other words. */
export const NO_ROUTE = notFound('Nothing is served under this path.')

/** The service can't do it now; the client may try again after some seconds. */
export function unavailable(message: string, retryAfterSeconds = 2): Fault {
  const headers = { 'retry-after': String(retryAfterSeconds) }
  return new Fault(503, 'UNAVAILABLE', message, { headers })
}

/** The path is known, but for other methods: `allow` names them. */
export function wrongMethod(allow: string, message = `This path answers ${allow} only.`): Fault {
  return new Fault(405, 'METHOD_NOT_ALLOWED', message, { headers: { allow } })
}

/** Thrown where the database or another part is out of reach: becomes 503 with Retry-After. */
export class Unavailable extends Error {
  override name = 'Unavailable'
}

/** What a query has found; 404 where it is undefined. */
export function found<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw notFound(`${what} not found`)
  return value
}
