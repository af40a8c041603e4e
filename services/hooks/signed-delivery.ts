import type { IncomingHttpHeaders } from 'node:http'
import type { SecretName } from '../../db/hooks/rows.ts'
import { explainMismatch, staleness, startHmacs, type HmacKeys } from './hmac.ts'

/** Whether a delivery is signed as it must be; a reason never holds a signature or a secret. */
export type Verification =
  | { readonly ok: true; readonly secret: SecretName }
  | { readonly ok: false; readonly status: 400 | 401; readonly reason: string }

/** The part of a signed delivery that comes before its body. */
export interface SignedHead {
  readonly headers: IncomingHttpHeaders
  readonly receivedAt: Date
}

/**
 * The verification of a delivery whose body is still arriving. It is over bytes, before anything is
 * parsed, and part by part: hashing 25 MiB at once would hold up everybody else.
 */
export interface Verifier {
  readonly update: (part: Buffer) => void
  /** Called once, with the whole body. */
  readonly finish: (body: Buffer) => Verification
}

/** What a scheme reads from the headers, or why it can't. */
export type Presented =
  | {
      /** When it was signed, in Unix seconds, if the scheme says so. */
      readonly time: string | null
      /** The signed text before the body. */
      readonly prefix: string
      readonly signatures: readonly Buffer[]
    }
  | { readonly status: 400 | 401; readonly reason: string }

export const MISSING = { status: 401, reason: 'signature missing' } as const
export const MALFORMED = { status: 401, reason: 'signature malformed' } as const

/**
 * Verifies what was presented with a delivery: its time within the window, then HMAC-SHA256 over the
 * bytes as received. Every accepted key is tried against every signature, without early exit.
 */
export function startVerifier(
  presented: Presented,
  receivedAt: Date,
  keys: HmacKeys,
  freshnessSeconds: number,
): Verifier {
  if ('reason' in presented) return refused(presented)
  const { time, prefix, signatures } = presented
  const stale = time === null ? undefined : staleness(time, receivedAt, freshnessSeconds)
  if (stale !== undefined) return refused({ status: 401, reason: stale })
  const hmacs = startHmacs(keys.accepted, prefix)
  return {
    update: hmacs.update,
    finish(body) {
      const secret = hmacs.match(signatures)
      if (secret !== undefined) return { ok: true, secret }
      return { ok: false, status: 401, reason: explainMismatch(keys, prefix, body, signatures) }
    },
  }
}

/** Refuses whatever the body is. */
function refused(refusal: { readonly status: 400 | 401; readonly reason: string }): Verifier {
  return { update: () => undefined, finish: () => ({ ok: false, ...refusal }) }
}

/** True for a time as senders write it: Unix seconds. */
export function isUnixTime(text: string): boolean {
  return /^\d{1,12}$/.test(text)
}

/** The value of a header under one of its names; undefined when it has none. */
export function singleHeader(
  headers: IncomingHttpHeaders,
  name: string,
  or = name,
): string | undefined {
  const value = headers[name] ?? headers[or]
  return typeof value === 'string' ? value : undefined
}
