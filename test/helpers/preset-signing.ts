import {
  createHash,
  createHmac,
  generateKeyPairSync,
  randomBytes,
  sign,
  type KeyObject,
} from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { keepSecret, secret as makeSecret } from './secrets.ts'

/** What a sender signs beside its secret. */
export type Sending = {
  readonly body: string
  readonly id: string
  /** When it is signed, in Unix seconds. */
  readonly at: number
  /** The address that the sender was given. */
  readonly url: string
}

type Headers = Readonly<Record<string, string>>

/** A sender as its documentation describes it, written without the product's own code. */
export type PresetSender = {
  readonly scheme: string
  readonly makeSecret: () => string
  readonly sign: (secret: string, sending: Sending) => Headers | Promise<Headers>
  /** The headers that prove it, beside those that say what it is. */
  readonly proof: readonly string[]
  readonly body: (sending: Omit<Sending, 'body'>, secret: string) => string
  readonly contentType?: string
  readonly type: string | null
  /** False where a delivery has no id of its own. */
  readonly hasId: boolean
  /** The id of an event, where it is not that of the delivery alone. */
  readonly eventId?: (sending: Sending) => string
  readonly detail: string
  /** The status of a stored delivery, and of a refused one. */
  readonly stored: 200 | 202 | 204
  readonly refused: 401 | 403
  readonly isTimed: boolean
  /** True where a library of the sender signs. */
  readonly byLibrary: boolean
}

type Encoding = 'hex' | 'base64' | 'base64url'
type Hash = 'sha256' | 'sha1'

export function mac(
  key: string | Buffer,
  text: string,
  encoding: Encoding = 'hex',
  hash: Hash = 'sha256',
) {
  return createHmac(hash, key).update(text).digest(encoding)
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A JSON Web Token by a shared secret. */
export function jwt(secret: string, claims: object, head: object = { alg: 'HS256' }): string {
  const parts = [head, claims].map((part) => Buffer.from(JSON.stringify(part)))
  const text = parts.map((part) => part.toString('base64url')).join('.')
  return `${text}.${mac(secret, text, 'base64url')}`
}

export const rfc3339 = (at: number): string => new Date(at * 1_000).toISOString()
const text = (): string => makeSecret('preset')
export const whsec = (): string =>
  keepSecret('preset', `whsec_${randomBytes(32).toString('base64')}`)

export const hexKey = (): string => keepSecret('preset', randomBytes(32).toString('hex'))

const privateKeys = new Map<string, KeyObject>()

export function ed25519(form: 'hex' | 'whpk'): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  const key = form === 'hex' ? raw.toString('hex') : `whpk_${raw.toString('base64')}`
  privateKeys.set(key, privateKey)
  return key
}

export function p256(): string {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  privateKeys.set(key, privateKey)
  return key
}

export function signed(publicKey: string, text: string, algorithm: 'sha256' | null): Buffer {
  const key = privateKeys.get(publicKey)
  if (key === undefined) throw new Error('another private key')
  return sign(algorithm, Buffer.from(text), key)
}

export const JSON_BODY = '{"hello": "wörld", "n": 1}'
export const USUAL = {
  makeSecret: text,
  body: () => JSON_BODY,
  type: null,
  hasId: false,
  detail: 'hmac-sha256 ok',
  stored: 202,
  refused: 403,
  isTimed: false,
  byLibrary: false,
} as const

/** One header with a signature of the body, and what the sender adds. */
export function plain(
  scheme: string,
  header: string,
  value: (secret: string, body: string) => string,
  more: Partial<PresetSender> & { readonly says?: (id: string) => Headers } = {},
): PresetSender {
  const { says, ...own } = more
  return {
    ...USUAL,
    scheme,
    proof: [header],
    sign: (secret, { body, id }) => ({ [header]: value(secret, body), ...says?.(id) }),
    ...own,
  }
}

export const hex = (secret: string, body: string): string => mac(secret, body)
export const sha256Hex = (secret: string, body: string): string => `sha256=${mac(secret, body)}`
export const base64 = (secret: string, body: string): string => mac(secret, body, 'base64')

/** Standard Webhooks by its own library. */
export function standard(
  scheme: string,
  prefix: 'webhook' | 'svix',
  more: Partial<PresetSender> = {},
): PresetSender {
  return {
    ...USUAL,
    scheme,
    makeSecret: whsec,
    proof: [`${prefix}-id`, `${prefix}-timestamp`, `${prefix}-signature`],
    sign: (secret, { body, id, at }) => ({
      [`${prefix}-id`]: id,
      [`${prefix}-timestamp`]: String(at),
      [`${prefix}-signature`]: new Webhook(secret).sign(id, new Date(at * 1_000), body),
    }),
    body: () => '{"type": "invoice.paid", "data": {}}',
    type: 'invoice.paid',
    hasId: true,
    isTimed: true,
    byLibrary: true,
    ...more,
  }
}

/** A token that is sent as it is. */
export function token(
  scheme: string,
  header: string,
  more: Partial<PresetSender> & { readonly says?: (id: string) => Headers } = {},
): PresetSender {
  const { says, ...own } = more
  const value = (secret: string): string => {
    if (header !== 'authorization') return secret
    return ['azure-devops', 'better-stack', 'postmark'].includes(scheme)
      ? `Basic ${Buffer.from(`:${secret}`).toString('base64')}`
      : `Bearer ${secret}`
  }
  return {
    ...USUAL,
    scheme,
    proof: [header],
    sign: (secret, { id }) => ({ [header]: value(secret), ...says?.(id) }),
    detail: 'token ok',
    ...own,
  }
}

/** A number that is another one in each delivery, for senders whose ids are numbers. */
export const number = (id: string): number => 10_000 + Number(id.replace(/\D/g, ''))

export const json = (value: object): (() => string) => {
  return () => JSON.stringify(value)
}
