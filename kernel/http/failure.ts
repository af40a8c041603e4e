import type { Context } from './context.ts'
import { Fault, unavailable, Unavailable, type FaultValue } from '../fault.ts'
import type { LogLimit } from './request-log.ts'
import { messageOf, type Log } from '../log.ts'

/** Logs what the handler of a request has thrown; the fault for its client tells nothing of it. */
export function faultOfFailure(
  error: unknown,
  log: Log,
  limit: LogLimit,
  service: string,
  { requestId, route }: Pick<Context, 'requestId' | 'route'>,
): FaultValue {
  if (error instanceof Fault) return error
  const down = error instanceof Unavailable
  if (!down || limit.allows('unavailable', route, 503)) {
    log[down ? 'warn' : 'error'](down ? 'unavailable' : 'handler failed', {
      request_id: requestId,
      service,
      route,
      error: messageOf(error),
      ...(down || !(error instanceof Error) ? {} : { stack: error.stack }),
    })
  }
  return down
    ? unavailable(
        'The database is out of reach; what was sent may not be stored. Try again shortly.',
      )
    : { status: 500, code: 'INTERNAL_ERROR', detail: 'Internal server error.' }
}
