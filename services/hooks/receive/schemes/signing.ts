import { createHmac } from 'node:crypto'
import type { Scheme, Key } from './scheme.ts'
import { signedTexts } from './signed-text.ts'

type Headers = Readonly<Record<string, string>>

const HMAC: ReadonlySet<string> = new Set(['sha256', 'sha512', 'sha1'])

/** Whether a delivery can be signed here: not by a public key, nor where its way is signed. */
export function isSignable({ algorithm, signed }: Scheme): boolean {
  return HMAC.has(algorithm) && !/\{(?!body\}|id\}|timestamp\})/.test(signed)
}

/**
 * Signs a delivery at a time, as its sender would, and returns the headers that prove it. Only
 * some schemes sign its id. No headers where only the sender can sign.
 */
export function signDelivery(
  scheme: Scheme,
  { id, body }: { id: string; body: Buffer },
  key: Key,
  at: Date,
): Headers {
  const { algorithm, signature, prefix, encoding, list, timestamp } = scheme
  if (!isSignable(scheme)) return {}
  const stamp = { id, time: timeText(at, scheme) }
  const [before = '', after = ''] = signedTexts(scheme, stamp, { headers: {}, receivedAt: at })
  const hmac = createHmac(algorithm, key).update(before).update(body).update(after)
  const made = prefix + hmac.digest(encoding)
  const time = list?.time
  const value = time === undefined ? made : time + stamp.time + list?.separator + made
  const ids = scheme.signed.includes('{id}') ? scheme.id.headers : []
  return {
    ...sameValue(ids, id),
    ...sameValue(timestamp, stamp.time),
    ...sameValue(signature, value),
  }
}

function sameValue(names: readonly string[], value: string): Headers {
  return Object.fromEntries(names.map((name) => [name, value]))
}

function timeText(at: Date, { clock }: Scheme): string {
  if (clock === 'RFC 3339') return at.toISOString()
  return String(clock === 'milliseconds' ? at.getTime() : Math.floor(at.getTime() / 1000))
}
