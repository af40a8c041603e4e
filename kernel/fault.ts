/**
 * A request that is refused before or instead of its handler's reply. `code` is the field's
 * UPPER_SNAKE term, `detail` one line for people, never a secret. Each service renders faults in the
 * error shape of its own contract.
 */
export interface Fault {
  readonly status: number
  readonly code: string
  readonly detail: string
  readonly headers?: Readonly<Record<string, string>>
}

/** Thrown where the database or another part is out of reach: becomes 503 with Retry-After. */
export class Unavailable extends Error {
  override name = 'Unavailable'
}

/** The service can't do it now; the sender may try again after the given seconds. */
export function unavailable(detail: string, retryAfterSeconds = 2): Fault {
  return {
    status: 503,
    code: 'UNAVAILABLE',
    detail,
    headers: { 'retry-after': String(retryAfterSeconds) },
  }
}

/** The path is known, but for other methods: `allow` names them. */
export function wrongMethod(allow: string): Fault {
  return {
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
    detail: `This path answers ${allow} only.`,
    headers: { allow },
  }
}
