import { createHmac, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import type { ProviderSecrets, SignedProvider } from './signing-secrets.ts'

/** Whether a delivery is signed as it must be; a reason never holds a signature or a secret. */
export type Verification =
  | { readonly ok: true }
  | { readonly ok: false; readonly status: 400 | 401; readonly reason: string }

export interface SignedDelivery {
  readonly headers: IncomingHttpHeaders
  /** The body as received: verification is over bytes, before anything is parsed. */
  readonly body: Buffer
  readonly receivedAt: Date
}

/** What a scheme reads from the headers: the text before the body, and the signatures presented. */
type Presented =
  | { readonly prefix: string; readonly signatures: readonly Buffer[]; readonly timestamp?: number }
  | { readonly status: 400 | 401; readonly reason: string }

const MISSING = { status: 401, reason: 'signature missing' } as const
const MALFORMED = { status: 401, reason: 'signature malformed' } as const

/**
 * Verifies a signed delivery (hooks.md section 5): HMAC-SHA256 in lower-case hex over the bytes as
 * received. Every accepted secret is tried against every presented signature, without early exit.
 * A missing time stamp of `chat` is 400, everything else that is wrong 401.
 */
export function verifySignature(
  provider: SignedProvider,
  delivery: SignedDelivery,
  secrets: ProviderSecrets,
  freshnessSeconds: number,
): Verification {
  const presented = SCHEMES[provider](delivery.headers)
  if ('reason' in presented) return { ok: false, ...presented }
  if (presented.timestamp !== undefined) {
    const age = Math.floor(delivery.receivedAt.getTime() / 1000) - presented.timestamp
    if (Math.abs(age) > freshnessSeconds) {
      const side =
        age > 0
          ? `stale by ${age - freshnessSeconds} s`
          : `${-age - freshnessSeconds} s ahead of the window`
      return { ok: false, status: 401, reason: side }
    }
  }
  if (matches(secrets.accepted, presented.prefix, delivery.body, presented.signatures))
    return { ok: true }
  return {
    ok: false,
    status: 401,
    reason: explain(secrets, presented.prefix, delivery.body, presented.signatures),
  }
}

const SCHEMES: Readonly<Record<SignedProvider, (headers: IncomingHttpHeaders) => Presented>> = {
  code_host(headers) {
    const value = header(headers, 'x-codehost-signature-256', 'x-hub-signature-256')
    if (value === undefined) return MISSING
    const signature = hexAfter('sha256=', value)
    return signature === undefined ? MALFORMED : { prefix: '', signatures: [signature] }
  },

  /** `t=<unix>,v1=<hex>[,v1=…]`: exactly one `t` of 1–12 digits; other schemes (`v0`) are decoys. */
  payments(headers) {
    const value = header(headers, 'payments-signature', 'stripe-signature')
    if (value === undefined) return MISSING
    const times: string[] = []
    const signatures: Buffer[] = []
    for (const part of value.split(',')) {
      if (part.startsWith('t=')) times.push(part.slice(2))
      const signature = hexAfter('v1=', part)
      if (signature !== undefined) signatures.push(signature)
    }
    const [time] = times
    if (time === undefined || times.length > 1 || !/^\d{1,12}$/.test(time)) return MALFORMED
    if (signatures.length === 0 || /\s/.test(value)) return MALFORMED
    return { prefix: `${time}.`, signatures, timestamp: Number(time) }
  },

  chat(headers) {
    const time = header(headers, 'x-chat-request-timestamp', 'x-slack-request-timestamp')
    if (time === undefined) return { status: 400, reason: 'timestamp header missing' }
    const value = header(headers, 'x-chat-signature', 'x-slack-signature')
    if (value === undefined) return MISSING
    const signature = hexAfter('v0=', value)
    if (signature === undefined || !/^\d{1,12}$/.test(time)) return MALFORMED
    return { prefix: `v0:${time}:`, signatures: [signature], timestamp: Number(time) }
  },
}

/** The neutral header name, else the real sender's. */
function header(headers: IncomingHttpHeaders, neutral: string, real: string): string | undefined {
  const value = headers[neutral] ?? headers[real]
  return typeof value === 'string' ? value : undefined
}

/** 32 bytes after a prefix; checked first, because `Buffer.from(x, 'hex')` truncates silently. */
function hexAfter(prefix: string, text: string): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined
  const hex = text.slice(prefix.length)
  return /^[0-9a-f]{64}$/.test(hex) ? Buffer.from(hex, 'hex') : undefined
}

function matches(
  secrets: readonly string[],
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): boolean {
  let found = false
  for (const secret of secrets) {
    const expected = createHmac('sha256', secret).update(prefix).update(body).digest()
    for (const signature of signatures) found = timingSafeEqual(expected, signature) || found
  }
  return found
}

/** Why a well-formed signature does not match, as far as trying the usual mistakes can tell. */
function explain(
  secrets: ProviderSecrets,
  prefix: string,
  body: Buffer,
  signatures: readonly Buffer[],
): string {
  const trimmed = secrets.accepted.map((secret) => secret.trimEnd())
  if (
    trimmed.some((secret, i) => secret !== secrets.accepted[i]) &&
    matches(trimmed, prefix, body, signatures)
  ) {
    return 'would match without the trailing newline of the configured secret'
  }
  const bare = body.at(-1) === 0x0a ? body.subarray(0, body.at(-2) === 0x0d ? -2 : -1) : undefined
  if (bare !== undefined && matches(secrets.accepted, prefix, bare, signatures)) {
    return 'would match without the trailing newline of the body'
  }
  if (matches(secrets.retired, prefix, body, signatures)) return 'matches a retired secret'
  return 'wrong secret or altered body'
}
