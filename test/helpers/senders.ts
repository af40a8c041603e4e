import { createHmac, randomBytes } from 'node:crypto'
import { enable, post, postForm, shownIn, type Bytes, type Fields } from './hooks.ts'
import { request, type RequestOptions, type Response } from './http.ts'
import { expectStatus } from './refusals.ts'
import { keepSecret, shownSecret } from './secrets.ts'

/** A fresh GATEHOUSE_SECRET_KEY. */
export function secretKey() {
  return keepSecret('secret-key', randomBytes(32).toString('base64'))
}

/** A signing secret as a sender makes it. */
export function signingSecret(bytes = 32) {
  return keepSecret('signing', `whsec_${randomBytes(bytes).toString('base64')}`)
}

/** How to sign; `at` in Unix seconds, now when absent. */
type StandardOptions = { id?: string; at?: number }

let made = 0

/** Headers of Standard Webhooks. `preset-senders.ts` has them by the library, which takes text alone. */
export function standardHeaders(
  secret: string,
  body: Bytes,
  { id = `msg_${process.pid}_${made++}`, at }: StandardOptions = {},
): Record<string, string> {
  const time = String(at ?? Math.floor(Date.now() / 1_000))
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${time}.`).update(body).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': time, 'webhook-signature': `v1,${mac}` }
}

/** Posts a signed body to a generic receiver. */
export function sendStandard(
  base: string,
  name: string,
  secret: string,
  body: Bytes = '{"a":1}',
  options: StandardOptions = {},
) {
  return post(base, `generic/${name}`, body, standardHeaders(secret, body, options))
}

/** Makes a generic provider that signs, and enables it; gives its secret. */
export async function addSigned(base: string, name: string) {
  const made = postForm(base, '/providers', { name, trust_mode: 'signed' })
  const page = await expectStatus(200, made, name)
  await enable(base, `generic:${name}`, true)
  return secretIn(page)
}

/** The signing secret that a page shows once, registered as a secret. */
export function secretIn(page: Response) {
  return shownSecret(page, 'made-token', /whsec_[\w+/]{43}=/)
}

/** Posts one of a provider's forms: `rotate`, `alarm`, … */
export function change(
  base: string,
  name: string,
  what: string,
  fields: Fields = {},
  headers: NonNullable<RequestOptions['headers']> = {},
) {
  return postForm(base, `/providers/${encodeURIComponent(name)}/${what}`, fields, headers)
}

/** What a provider's card says, by term; `switch` is the state of its switch, `badges` what it wears. */
export async function cardOf(base: string, name: string): Promise<Fields> {
  const { text } = await request(`${base}/providers?open=${encodeURIComponent(name)}`)
  const start = text.indexOf(`data-provider="${name}"`)
  if (start < 0) throw new Error(`there is no card of ${name}`)
  const card = text.slice(start, text.indexOf('</article>', start))
  const badges = [...card.matchAll(/<span\s+class="badge[^>]*>([^<]*)<\/span\s*>/g)]
    .filter(([tag]) => !/\bhidden\b/.test(tag))
    .map(([, label = '']) => label.trim())
  const isOn = card.includes('aria-checked="true"')
  return { ...shownIn(card).facts, switch: isOn ? 'on' : 'off', badges: badges.join(', ') }
}
