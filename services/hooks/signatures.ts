import type { IncomingHttpHeaders } from 'node:http'
import type { SecretName } from '../../db/hooks/rows.ts'
import { explainMismatch, hmac, matchingSecret, staleness, type HmacKeys } from './hmac.ts'
import type { SignedProvider } from './signing-secrets.ts'

/** Whether a delivery is signed as it must be; a reason never holds a signature or a secret. */
export type Verification =
  | { readonly ok: true; readonly secret: SecretName }
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
  secrets: HmacKeys,
  freshnessSeconds: number,
): Verification {
  const scheme = SCHEMES[provider]
  const presented = scheme.read(delivery.headers)
  if ('reason' in presented) return { ok: false, ...presented }
  const { time, signatures } = presented
  const stale = time === null ? undefined : staleness(time, delivery.receivedAt, freshnessSeconds)
  if (stale !== undefined) return { ok: false, status: 401, reason: stale }
  const prefix = scheme.prefix(time ?? '')
  const secret = matchingSecret(secrets.accepted, prefix, delivery.body, signatures)
  if (secret !== undefined) return { ok: true, secret }
  const reason = explainMismatch(secrets, prefix, delivery.body, signatures)
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

/** 32 bytes after a prefix; checked first, because `Buffer.from(x, 'hex')` truncates silently. */
function hexAfter(prefix: string, text: string): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined
  const hex = text.slice(prefix.length)
  return /^[0-9a-f]{64}$/.test(hex) ? Buffer.from(hex, 'hex') : undefined
}
