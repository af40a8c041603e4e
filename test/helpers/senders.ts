import { createHmac, randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { enable, post, postForm, shownIn } from './hooks.ts'
import type { Bytes } from './hooks.ts'
import { request } from './http.ts'
import type { RequestOptions, Response } from './http.ts'
import { keepSecret } from './secrets.ts'

/** A fresh GATEHOUSE_SECRET_KEY. */
export function secretKey(): string {
  return keepSecret('secret-key', randomBytes(32).toString('base64'))
}

/** A signing secret as a sender makes it. */
export function signingSecret(bytes = 32): string {
  return keepSecret('signing', `whsec_${randomBytes(bytes).toString('base64')}`)
}

/** How to sign; `at` in Unix seconds, now when absent. */
export type StandardOptions = { id?: string; at?: number }

let made = 0

/** Headers by the scheme's own library, or for bytes, which it can't take, by the same rule. */
export function standardHeaders(
  secret: string,
  body: Bytes,
  {
    id = `msg_${process.pid}_${made++}`,
    at = Math.floor(Date.now() / 1000),
  }: StandardOptions = {},
): Record<string, string> {
  const signature =
    typeof body === 'string'
      ? new Webhook(secret).sign(id, new Date(at * 1000), body)
      : `v1,${createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
          .update(`${id}.${at}.`)
          .update(body)
          .digest('base64')}`
  return { 'webhook-id': id, 'webhook-timestamp': String(at), 'webhook-signature': signature }
}

/** Posts a signed body to a generic receiver. */
export function sendStandard(
  base: string,
  name: string,
  secret: string,
  body: Bytes = '{"a":1}',
  options: StandardOptions = {},
): Promise<Response> {
  return post(base, `generic/${name}`, body, standardHeaders(secret, body, options))
}

/** Makes a generic provider that signs, and enables it; gives its secret. */
export async function addSigned(
  base: string,
  name: string,
  { secret = '', enabled = true } = {},
): Promise<string> {
  const page = await postForm(base, '/providers', { name, trust_mode: 'signed', secret })
  if (page.status !== 200) throw new Error(`POST /providers answered ${page.status}, expected 200`)
  if (enabled) await enable(base, `generic:${name}`, true)
  return secret === '' ? secretIn(page) : secret
}

/** The signing secret that a page shows once, registered as a secret. */
export function secretIn({ text }: Response): string {
  const secret = /id="made-token"[^>]*><code>(whsec_[\w+/]{43}=)</.exec(text)?.[1]
  if (secret === undefined) throw new Error('the page shows no signing secret of 32 bytes')
  return keepSecret('signing', secret)
}

/** Posts one of a provider's forms: `rotate`, `alarm`, … */
export function change(
  base: string,
  name: string,
  what: string,
  fields: Readonly<Record<string, string>> = {},
  headers: NonNullable<RequestOptions['headers']> = {},
): Promise<Response> {
  return postForm(base, `/providers/${encodeURIComponent(name)}/${what}`, fields, headers)
}

/** What a provider's card says, by term; `switch` is the state of its switch, `badges` what it wears. */
export async function cardOf(
  base: string,
  name: string,
): Promise<Readonly<Record<string, string>>> {
  const { text } = await request(`${base}/providers?open=${encodeURIComponent(name)}`)
  const start = text.indexOf(`data-provider="${name}"`)
  if (start < 0) throw new Error(`there is no card of ${name}`)
  const card = text.slice(start, text.indexOf('</article>', start))
  const on = card.includes('aria-checked="true"') ? 'on' : 'off'
  const badges = [...card.matchAll(/<span\s+class="badge[^>]*>([^<]*)<\/span\s*>/g)]
    .filter(([tag]) => !/\bhidden\b/.test(tag))
    .map(([, label = '']) => label.trim())
  return { ...shownIn(card).facts, switch: on, badges: badges.join(', ') }
}
