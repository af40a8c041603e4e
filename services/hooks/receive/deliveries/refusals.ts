import { Fault, forbidden, unavailable } from '../../../../kernel/fault.ts'
import type { Scheme } from '../schemes/scheme.ts'

// What a sender is told of a delivery that is not taken.

export function refusalOf(status: Scheme['refusal'], message: string): Fault {
  return status === 401 ? new Fault(401, 'UNAUTHORIZED', message) : forbidden(message)
}

/** 503: too much is waiting. */
export function overloaded(): Fault {
  return unavailable('More is arriving than can be stored; nothing was stored. Try again shortly.')
}

export function disabled(provider: string): Fault {
  return forbidden(`The provider ${provider} is disabled; enable it on the providers page.`)
}

export const LOOP =
  'This delivery was sent from here twice already; ' +
  'look for a destination or replay that leads back here.'
export const UNKNOWN_SIGNED =
  'No signed provider is configured under this name; set its secret to configure it.'
export const UNKNOWN_GENERIC =
  'There is no generic provider under this name; an operator creates it first.'
export const HEADER_MISSING =
  'The header X-Chat-Request-Timestamp is missing; send the time the signature was made at.'
export const SIGNATURE_WRONG =
  'The signature is missing, malformed, stale or wrong; ' +
  'sign the exact bytes of the body with the shared secret.'
export const BODY_UNREADABLE = 'The body is neither a JSON object nor a form; send one of them.'
export const TOKEN_WRONG = 'The token is missing or wrong; send it as Authorization: Bearer.'
