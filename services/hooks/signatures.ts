import type { IncomingHttpHeaders } from 'node:http'
import { hmac, type HmacKeys } from './hmac.ts'
import {
  isUnixTime,
  MALFORMED,
  MISSING,
  singleHeader,
  startVerifier,
  type Presented,
  type SignedHead,
  type Verifier,
} from './signed-delivery.ts'
import type { SignedProvider } from './signing-secrets.ts'

/**
 * Verifies a signed delivery (hooks.md section 5): HMAC-SHA256 in lower-case hex. A missing time stamp
 * of `chat` is 400, everything else that is wrong 401.
 */
export function verifySignature(
  provider: SignedProvider,
  { headers, receivedAt }: SignedHead,
  secrets: HmacKeys,
  freshnessSeconds: number,
): Verifier {
  return startVerifier(SCHEMES[provider].read(headers), receivedAt, secrets, freshnessSeconds)
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
      const value = singleHeader(headers, ...CODE_HOST_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('sha256=', value)
      return signature === undefined
        ? MALFORMED
        : { time: null, prefix: '', signatures: [signature] }
    },
    prefix: () => '',
    write: (hex) => both(CODE_HOST_SIGNATURE, `sha256=${hex}`),
  },

  payments: {
    /** `t=<unix>,v1=<hex>[,v1=…]`: exactly one `t` of 1–12 digits; other schemes (`v0`) are decoys. */
    read(headers) {
      const value = singleHeader(headers, ...PAYMENTS_SIGNATURE)
      if (value === undefined) return MISSING
      const times: string[] = []
      const signatures: Buffer[] = []
      for (const part of value.split(',')) {
        if (part.startsWith('t=')) times.push(part.slice(2))
        const signature = hexAfter('v1=', part)
        if (signature !== undefined) signatures.push(signature)
      }
      const [time] = times
      if (time === undefined || times.length > 1 || !isUnixTime(time)) return MALFORMED
      if (signatures.length === 0 || /\s/.test(value)) return MALFORMED
      return { time, prefix: paymentsPrefix(time), signatures }
    },
    prefix: paymentsPrefix,
    write: (hex, time) => both(PAYMENTS_SIGNATURE, `t=${time},v1=${hex}`),
  },

  chat: {
    read(headers) {
      const time = singleHeader(headers, ...CHAT_TIME)
      if (time === undefined) return { status: 400, reason: 'timestamp header missing' }
      const value = singleHeader(headers, ...CHAT_SIGNATURE)
      if (value === undefined) return MISSING
      const signature = hexAfter('v0=', value)
      if (signature === undefined || !isUnixTime(time)) return MALFORMED
      return { time, prefix: chatPrefix(time), signatures: [signature] }
    },
    prefix: chatPrefix,
    write: (hex, time) => ({ ...both(CHAT_TIME, time), ...both(CHAT_SIGNATURE, `v0=${hex}`) }),
  },
}

function paymentsPrefix(time: string): string {
  return `${time}.`
}

function chatPrefix(time: string): string {
  return `v0:${time}:`
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
