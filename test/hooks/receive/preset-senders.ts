import {
  createHmac,
  generateKeyPairSync,
  hash,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { now } from '../../helpers/hooks.ts'
import { ROOT } from '../../helpers/program.ts'
import { keepSecret, secret as makeSecret } from '../../helpers/secrets.ts'

// Senders as their documentation describes them, without the product's own code. Each is a row of
// test/fixtures/preset-senders.json. In its texts, {body}, {at}, {mac} and others stand for values of a delivery.

type Headers = Readonly<Record<string, string>>

/** A sender; most members are those that nearly all have when they are absent. */
export type SenderRow = {
  /** Which library signs, or the algorithm and the encoding; "none" where the secret itself is sent. */
  mac?: string
  /** What the algorithm is applied to; the body when absent. */
  signs?: string
  key?: 'text' | 'hex' | 'whpk' | 'ed25519' | 'p256'
  /** The headers that prove it, and those that say what it is. */
  proof?: Headers
  says?: Headers
  body?: unknown
  contentType?: string
  /** The type and the id under which it is stored. */
  type?: string
  id?: string
  detail?: string
  /** The status of a stored delivery, and of a refused one. */
  stored?: number
  refused?: number
}

/** What a sender signs beside its secret; `at` in Unix seconds, `url` is the address that it was given. */
export type Sending = {
  body: string
  id: string
  at: number
  url: string
}

export type PresetSender = ReturnType<typeof senderOf>

const JSON_BODY = '{"hello": "wörld", "n": 1}'
const LIBRARIES = ['standard', 'octokit', 'stripe']
const DETAILS: Headers = { none: 'token ok', ed25519: 'ed25519 ok', p256: 'ecdsa-p256 ok' }
const privateKeys = new Map<string, KeyObject>()

/** A new secret, or the public key of a new pair. */
function makeKey(kind: NonNullable<SenderRow['key']> | 'whsec') {
  if (kind === 'text') return makeSecret('preset')
  if (kind === 'hex') return keepSecret('preset', randomBytes(32).toString('hex'))
  if (kind === 'whsec') return keepSecret('preset', `whsec_${randomBytes(32).toString('base64')}`)
  const { privateKey, publicKey } =
    kind === 'p256'
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519')
  const der = publicKey.export({ type: 'spki', format: 'der' })
  const raw = der.subarray(-32)
  const whole = { p256: der.toString('base64'), ed25519: raw.toString('hex') }
  const key = kind === 'whpk' ? `whpk_${raw.toString('base64')}` : whole[kind]
  privateKeys.set(key, privateKey)
  return key
}

/** A JSON Web Token by a shared secret. */
export function jwt(secret: string, claims: object, head: object = { alg: 'HS256' }) {
  const parts = [head, claims].map((part) => Buffer.from(JSON.stringify(part)))
  const text = parts.map((part) => part.toString('base64url')).join('.')
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

/** A sender of a scheme, as its row describes it. */
export function senderOf(scheme: string, row: SenderRow) {
  const { mac = 'sha256 hex', signs = '{body}', proof = {}, says = {}, body, type, id } = row
  const [algorithm = '', encoding = 'hex'] = mac.split(' ') as [string, BufferEncoding]
  const isLibrary = LIBRARIES.includes(mac)
  const { key = mac === 'standard' ? 'whsec' : 'text' } = row

  async function macOf(secret: string, sending: Sending): Promise<string> {
    const { body: payload, at: timestamp } = sending
    if (mac === 'standard')
      return new Webhook(secret).sign(sending.id, new Date(timestamp * 1_000), payload)
    if (mac === 'octokit') return signGithub(secret, payload)
    if (mac === 'stripe')
      return Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp })
    if (mac === 'netlify') return jwt(secret, { iss: 'netlify', sha256: hash('sha256', payload) })
    return macHere(secret, sending)
  }

  function macHere(secret: string, sending: Sending) {
    const text = fill(signs, sending, secret)
    const privateKey = privateKeys.get(secret)
    if (privateKey !== undefined) {
      return sign(algorithm === 'p256' ? 'sha256' : null, Buffer.from(text), privateKey).toString(
        encoding,
      )
    }
    const bytes = key === 'hex' ? Buffer.from(secret, 'hex') : secret
    return createHmac(algorithm, bytes).update(text).digest().toString(encoding)
  }

  return {
    scheme,
    proof: Object.keys(proof),
    type: type ?? null,
    contentType: row.contentType ?? 'application/json',
    detail: row.detail ?? DETAILS[algorithm] ?? `hmac-${/^sha\d+/.exec(mac)?.[0] ?? 'sha256'} ok`,
    stored: row.stored ?? 202,
    refused: row.refused ?? 403,
    /** Whether it signs a time; the two libraries do. */
    isTimed: /\{(at|ms|rfc3339)\}|"(standard|stripe)"/.test(JSON.stringify(row)),
    isLibrary,
    makeSecret: () => makeKey(key),
    /** Under which id the event is stored; undefined where its sender gives none. */
    idOf: (sending: Sending) => (id === undefined ? undefined : fill(id, sending)),
    /** What a sender writes when nobody has changed it. */
    bodyOf(sending: Omit<Sending, 'body'>, secret: string) {
      const unsigned = { ...sending, body: '' }
      const text = typeof body === 'string' ? body : JSON.stringify(body)
      if (text === undefined) return JSON_BODY
      const bare = text.replaceAll(/"(\{(?:number|ms)\})"/g, '$1')
      const inside = text.includes('{mac}') ? macHere(secret, unsigned) : ''
      return fill(bare, unsigned, secret, inside)
    },
    /** The headers of a delivery. */
    async sign(secret: string, sending: Sending) {
      const made = mac === 'none' ? '' : await macOf(secret, sending)
      const entries = Object.entries({ ...proof, ...says })
      return Object.fromEntries(
        entries.map(([name, text]) => [name, fill(text, sending, secret, made)]),
      )
    },
  }
}

/** Puts values in place of their names. */
function fill(text: string, sending: Sending, secret = '', mac = '') {
  const { body, id, at, url } = sending
  const fields = [...new URLSearchParams(body)].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const values: Readonly<Record<string, string>> = {
    body,
    id,
    at: String(at),
    ms: `${at}000`,
    rfc3339: new Date(at * 1_000).toISOString(),
    url,
    path: new URL(url).pathname,
    // Another one in each delivery, for senders whose ids are numbers.
    number: `1${id.replace(/\D/g, '').padStart(4, '0')}`,
    // Twilio signs the fields of a form without marks between them.
    fields: fields.flat().join(''),
    secret,
    basic: Buffer.from(`:${secret}`).toString('base64'),
    mac,
  }
  return text.replaceAll(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole)
}

const ROWS: Readonly<Record<string, SenderRow>> = JSON.parse(
  readFileSync(join(ROOT, 'test/fixtures/preset-senders.json'), 'utf8'),
)

/** Every preset, one sender each. */
export const PRESET_SENDERS = Object.entries(ROWS).map(([name, row]) => senderOf(name, row))

/** The sender with a scheme. */
export function presetSender(scheme: string) {
  const found = PRESET_SENDERS.find((one) => one.scheme === scheme)
  if (found === undefined) throw new Error(`there is no sender ${scheme}`)
  return found
}

let made = 0

/** A new delivery of a sender to an address, not signed yet. */
export function sendingTo(url: string, sender: PresetSender, secret: string, at = now()) {
  const stamp = { id: `delivery-${made++}`, at, url }
  return { ...stamp, body: sender.bodyOf(stamp, secret) }
}
