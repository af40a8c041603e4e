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

/** What a scheme reads from the headers: when it was signed, if it says so, and the signatures. */
type Presented =
  | { readonly time: string | null; readonly signatures: readonly Buffer[] }
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
  const scheme = SCHEMES[provider]
  const presented = scheme.read(delivery.headers)
  if ('reason' in presented) return { ok: false, ...presented }
  const { time, signatures } = presented
  if (time !== null) {
    const age = Math.floor(delivery.receivedAt.getTime() / 1000) - Number(time)
    if (Math.abs(age) > freshnessSeconds) {
      const side =
        age > 0
          ? `stale by ${age - freshnessSeconds} s`
          : `${-age - freshnessSeconds} s ahead of the window`
      return { ok: false, status: 401, reason: side }
    }
  }
  const prefix = scheme.prefix(time ?? '')
  if (matches(secrets.accepted, prefix, delivery.body, signatures)) return { ok: true }
  const reason = explain(secrets, prefix, delivery.body, signatures)
  return { ok: false, status: 401, reason }
}

/**
 * Signs a body as its sender does at a time: headers, in lower case, that `verifySignature` and the
 * sender's own library accept, in the neutral spelling and in the real sender's.
 */
export function signBody(
  provider: SignedProvider,
  body: Buffer,
  secret: string,
  at: Date,
): Readonly<Record<string, string>> {
  const { prefix, write } = SCHEMES[provider]
  const time = String(Math.floor(at.getTime() / 1000))
  return write(hmac(secret, prefix(time), body).toString('hex'), time)
}

/** One sender's way to sign: what is read from its headers and what is written there. */
interface Scheme {
  readonly read: (headers: IncomingHttpHeaders) => Presented
  /** The signed text before the body; `time` in Unix seconds. */
  readonly prefix: (time: string) => string
  readonly write: (hex: string, time: string) => Readonly<Record<string, string>>
}

/** A header's neutral name and the real sender's. */
type Names = readonly [neutral: string, real: string]

const CODE_HOST_SIGNATURE: Names = ['x-codehost-signature-256', 'x-hub-signature-256']
const PAYMENTS_SIGNATURE: Names = ['payments-signature', 'stripe-signature']
const CHAT_SIGNATURE: Names = ['x-chat-signature', 'x-slack-signature']
const CHAT_TIME: Names = ['x-chat-request-timestamp', 'x-slack-request-timestamp']

const SCHEMES: Readonly<Record<SignedProvider, Scheme>> = {
  code_host: {
    read(headers) {
      const value = header(headers, CODE_HOST_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('sha256=', value)
      return signature === undefined ? MALFORMED : { time: null, signatures: [signature] }
    },
    prefix: () => '',
    write: (hex) => both(CODE_HOST_SIGNATURE, `sha256=${hex}`),
  },

  payments: {
    /** `t=<unix>,v1=<hex>[,v1=…]`: exactly one `t` of 1–12 digits; other schemes (`v0`) are decoys. */
    read(headers) {
      const value = header(headers, PAYMENTS_SIGNATURE)
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
      return { time, signatures }
    },
    prefix: (time) => `${time}.`,
    write: (hex, time) => both(PAYMENTS_SIGNATURE, `t=${time},v1=${hex}`),
  },

  chat: {
    read(headers) {
      const time = header(headers, CHAT_TIME)
      if (time === undefined) return { status: 400, reason: 'timestamp header missing' }
      const value = header(headers, CHAT_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('v0=', value)
      if (signature === undefined || !/^\d{1,12}$/.test(time)) return MALFORMED
      return { time, signatures: [signature] }
    },
    prefix: (time) => `v0:${time}:`,
    write: (hex, time) => ({ ...both(CHAT_TIME, time), ...both(CHAT_SIGNATURE, `v0=${hex}`) }),
  },
}

/** The neutral header name, else the real sender's. */
function header(headers: IncomingHttpHeaders, [neutral, real]: Names): string | undefined {
  const value = headers[neutral] ?? headers[real]
  return typeof value === 'string' ? value : undefined
}

function both([neutral, real]: Names, value: string): Readonly<Record<string, string>> {
  return { [neutral]: value, [real]: value }
}

function hmac(secret: string, prefix: string, body: Buffer): Buffer {
  return createHmac('sha256', secret).update(prefix).update(body).digest()
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
    const expected = hmac(secret, prefix, body)
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
  const trimmed = secrets.accepted.map((secret) => secret.replace(/\r?\n$/, ''))
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
