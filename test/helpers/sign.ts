import { createHmac } from 'node:crypto'
import { sign } from '@octokit/webhooks-methods'
import Stripe from 'stripe'

/** Which header names a sender uses: the neutral ones, or those of the real service. */
export type Spelling = 'neutral' | 'real'

/** Headers to send with a body. */
export type SignedHeaders = Readonly<Record<string, string>>

/** When and how to sign; `at` is in Unix seconds, now when absent. */
export type SignOptions = { spelling?: Spelling; at?: number }

/** `sha256=…` over the body, made by the code host's own library. */
export async function codeHostHeaders(
  secret: string,
  body: string,
  { spelling = 'neutral' }: SignOptions = {},
): Promise<SignedHeaders> {
  const name = spelling === 'neutral' ? 'X-CodeHost-Signature-256' : 'X-Hub-Signature-256'
  return { [name]: await sign(secret, body) }
}

/** `t=…,v1=…` over `{t}.{body}`, made by the payment service's own library. */
export function paymentsHeaders(
  secret: string,
  body: string,
  { spelling = 'neutral', at = now() }: SignOptions = {},
): SignedHeaders {
  const name = spelling === 'neutral' ? 'Payments-Signature' : 'Stripe-Signature'
  return { [name]: paymentsHeader(secret, body, at) }
}

/** The value of the payments signature header. */
export function paymentsHeader(secret: string, body: string, at: number = now()): string {
  return Stripe.webhooks.generateTestHeaderString({ payload: body, secret, timestamp: at })
}

/** `v0=…` over `v0:{ts}:{body}`, and the timestamp's header. */
export function chatHeaders(
  secret: string,
  body: string | Uint8Array,
  { spelling = 'neutral', at = now() }: SignOptions = {},
): SignedHeaders {
  const vendor = spelling === 'neutral' ? 'Chat' : 'Slack'
  const hmac = createHmac('sha256', secret).update(`v0:${at}:`).update(body).digest('hex')
  return { [`X-${vendor}-Signature`]: `v0=${hmac}`, [`X-${vendor}-Request-Timestamp`]: String(at) }
}

function now(): number {
  return Math.floor(Date.now() / 1000)
}
