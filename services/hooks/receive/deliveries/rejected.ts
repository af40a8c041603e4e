import { UNKNOWN_PROVIDER } from '../../../../db/hooks/receive/rejections.ts'
import type { Fault } from '../../../../kernel/fault.ts'
import { redactUnknownPath } from '../../redact.ts'
import type { Rejections } from '../rejections.ts'

/** Where a refused delivery is noted. */
interface Notes {
  rejections: Rejections
}

/** What is noted of a delivery. */
interface Refused {
  provider: string
  method: string
  path: string
  client: string
  receivedAt: Date
}

/** Counts a rejected delivery (401, 403, 413) and gives the fault to be thrown. */
export function rejected(
  { rejections }: Notes,
  { provider, client, receivedAt: at }: Refused,
  fault: Fault,
  reason: string,
  wrongSecret = false,
): Fault {
  const { status } = fault
  if (status === 401 || status === 403 || status === 413) {
    rejections.record({ provider, status, client, reason, at, wrongSecret })
  }
  return fault
}

/**
 * Counts a delivery to a path without a provider (404), so that a mistyped address can be found.
 * Returns the fault to throw.
 */
export function rejectedPath(
  { rejections }: Notes,
  { method, path, client, receivedAt: at }: Omit<Refused, 'provider'>,
  fault: Fault,
  why = 'unknown path',
): Fault {
  const reason = `${why}: ${method} ${redactUnknownPath(path)}`
  rejections.record({ provider: UNKNOWN_PROVIDER, status: 404, client, reason, at })
  return fault
}
