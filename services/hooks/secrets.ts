import { createCipheriv, createDecipheriv, createHash, timingSafeEqual } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import Type from 'typebox'
import type { Provider, SecretName } from '../../db/hooks/providers.ts'
import { hashToken, type RandomBytes } from '../../kernel/tokens.ts'
import type { HmacKeys } from './schemes.ts'

/**
 * The providers whose deliveries are signed by the secrets of the configuration (hooks.md section
 * 5).
 */
export const SIGNED_PROVIDERS = ['code_host', 'payments', 'chat'] as const
export type SignedProvider = (typeof SIGNED_PROVIDERS)[number]

export function isSignedProvider(name: string): name is SignedProvider {
  return name === 'code_host' || name === 'payments' || name === 'chat'
}

/** True for a name that `/webhooks/generic/{name}` can have (hooks.md section 4). */
export function isGenericName(name: string): boolean {
  return /^[a-z0-9][a-z0-9_-]{0,63}$/.test(name)
}

type SecretVariable = `HOOKS_${Uppercase<SignedProvider>}_SECRET`

/**
 * The variable that has a provider's secret; the one being retired is in the same with `_PREVIOUS`.
 */
export function secretVariable(provider: SignedProvider) {
  return `HOOKS_${provider.toUpperCase() as Uppercase<SignedProvider>}_SECRET` as const
}

/** The part of the configuration that holds secrets. */
interface SecretSource {
  readonly current: {
    readonly [V in SecretVariable | `${SecretVariable}_PREVIOUS`]?: string | undefined
  } & { readonly GATEHOUSE_SECRET_KEY?: Buffer | undefined }
}

/**
 * Secrets of a signed provider: all `accepted` ones verify; `retired` ones only explain a mismatch.
 */
export interface ProviderSecrets {
  readonly accepted: readonly string[]
  readonly retired: readonly string[]
  /** When this process found the accepted ones configured: a use noted before is of others. */
  readonly since: Date
}

/** The key of a stored secret, or why there is none. */
type StoredKey = { readonly key: Buffer } | { readonly problem: string }

/** The secrets by which deliveries are signed. */
export interface SigningSecrets {
  /** The configured secrets of a signed provider; undefined when it has none. */
  of(provider: SignedProvider): ProviderSecrets | undefined
  /**
   * Encrypts the stored secrets of generic providers, the same while its key is; undefined without
   * a key.
   */
  box(): SecretBox | undefined
  /** The key in a stored secret of a generic provider. */
  keyIn(sealed: Buffer | null, provider: string, which?: SecretName): StoredKey
}

/** How many replaced secrets are remembered to explain mismatches. */
const MAX_RETIRED = 3

/**
 * Follows the configuration, so that a re-read environment file counts at once. A secret that was
 * replaced while the process runs is remembered as retired.
 */
export function configuredSecrets(config: SecretSource, random: RandomBytes): SigningSecrets {
  const known = new Map<SignedProvider, ProviderSecrets>()
  let boxKey: Buffer | undefined
  let box: SecretBox | undefined

  function of(provider: SignedProvider): ProviderSecrets | undefined {
    const variable = secretVariable(provider)
    const { [variable]: current, [`${variable}_PREVIOUS` as const]: previous } = config.current
    const before = known.get(provider)
    if (current === undefined) return undefined
    const [knownCurrent, knownPrevious] = before?.accepted ?? []
    if (before !== undefined && knownCurrent === current && knownPrevious === previous)
      return before
    const accepted = previous === undefined ? [current] : [current, previous]
    const replaced = [...(before?.accepted ?? []), ...(before?.retired ?? [])]
    const retired = replaced.filter((secret) => !accepted.includes(secret)).slice(0, MAX_RETIRED)
    const secrets = { accepted, retired, since: new Date() }
    known.set(provider, secrets)
    return secrets
  }

  function presentBox(): SecretBox | undefined {
    const key = config.current.GATEHOUSE_SECRET_KEY
    if (key !== boxKey) {
      boxKey = key
      box = key === undefined ? undefined : createSecretBox(key, random)
    }
    return box
  }

  // Read once now: a secret that is replaced before its first use is remembered as well.
  for (const provider of SIGNED_PROVIDERS) of(provider)
  return { of, box: presentBox, keyIn: rememberKeys(presentBox) }
}

/**
 * Decrypts a stored secret once: a row that is read again has the same bytes until the secret
 * changes.
 */
export function rememberKeys(boxOf: () => SecretBox | undefined): SigningSecrets['keyIn'] {
  const opened = new Map<
    string,
    { readonly sealed: Buffer; readonly box: SecretBox; readonly found: StoredKey }
  >()

  return (sealed, provider, which = 'current') => {
    if (sealed === null) return { problem: 'there is no secret' }
    const box = boxOf()
    if (box === undefined) return { problem: 'GATEHOUSE_SECRET_KEY is not set' }
    const place = `${which} ${provider}`
    const before = opened.get(place)
    if (before?.box === box && before.sealed.equals(sealed)) return before.found
    const secret = box.open(sealed, provider)
    const key = 'text' in secret ? signingKey(secret.text) : undefined
    const problem = 'problem' in secret ? secret.problem : 'damaged'
    const found = key === undefined ? { problem } : { key }
    opened.set(place, { sealed, box, found })
    return found
  }
}

/**
 * The keys that verify a delivery of a time to a generic provider that signs. Without a current one
 * there is none: nothing is verified.
 */
export function keysAt(secrets: SigningSecrets, provider: Provider, at: Date): HmacKeys {
  const { name, signing_secret, previous_signing_secret } = provider
  const current = secrets.keyIn(signing_secret, name)
  if ('problem' in current) return { accepted: [], retired: [] }
  const previous = secrets.keyIn(previous_signing_secret, name, 'previous')
  if ('problem' in previous) return { accepted: [current.key], retired: [] }
  return acceptsPrevious(provider, at)
    ? { accepted: [current.key, previous.key], retired: [] }
    : { accepted: [current.key], retired: [previous.key] }
}

/** Whether the token or secret before the last rotation is still accepted at a time. */
export function acceptsPrevious(
  { previous_until }: Pick<Provider, 'previous_until'>,
  at: Date,
): boolean {
  return previous_until !== null && at < previous_until
}

/** hooks.md section 2, SecretStatus. */
export const SecretStatus = Type.Union([
  Type.Literal('configured'),
  Type.Literal('missing'),
  Type.Literal('none-by-design'),
])
export type SecretStatus = Type.Static<typeof SecretStatus>

type Secretive = Pick<Provider, 'name' | 'trust_mode' | 'token_hash' | 'signing_secret'>

/** Whether a provider's token or secret exists and can be used. */
export function secretStatus(provider: Secretive, secrets: SigningSecrets): SecretStatus {
  const { name, trust_mode, token_hash, signing_secret } = provider
  if (trust_mode === 'open' || trust_mode === 'queue') return 'none-by-design'
  const exists = isSignedProvider(name)
    ? secrets.of(name) !== undefined
    : trust_mode === 'token'
      ? token_hash !== null
      : 'key' in secrets.keyIn(signing_secret, name)
  return exists ? 'configured' : 'missing'
}

/** A provider without its token or signing secret is disabled whatever the operator wants. */
export function mayDeliver(
  provider: Secretive & Pick<Provider, 'enabled'>,
  secrets: SigningSecrets,
): boolean {
  return provider.enabled && secretStatus(provider, secrets) !== 'missing'
}

/** How a signing secret of Standard Webhooks begins. */
export const SECRET_PREFIX = 'whsec_'

/** The accepted form of a signing secret, in words. */
export const SIGNING_SECRET_FORM = `"${SECRET_PREFIX}" and then 24 to 64 bytes as base64`

/** A fresh signing secret of 32 bytes, as senders take it. */
export function makeSigningSecret(random: RandomBytes): string {
  return SECRET_PREFIX + random(32).toString('base64')
}

/** The key of a signing secret, whose prefix may be missing; undefined for text of another form. */
export function signingKey(secret: string): Buffer | undefined {
  const text = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret
  // Checked first, because `Buffer.from(x, 'base64')` leaves out what it can't read.
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) {
    return undefined
  }
  const key = Buffer.from(text, 'base64')
  return key.length >= 24 && key.length <= 64 ? key : undefined
}

/** Encrypts small secrets that are stored; AES-256-GCM, each sealed text bound to a name. */
export interface SecretBox {
  /** Never gives the same bytes twice. `name` is not kept in them, but needed to open them. */
  seal(text: string, name: string): Buffer
  open(sealed: Buffer, name: string): Opened
}

/** A text, or why there is none; `damaged` also means sealed for another name. */
export type Opened =
  | { readonly text: string }
  | { readonly problem: 'sealed with another key' | 'damaged' }

/** Sealed bytes: version, id of the key, nonce, cipher text, tag. */
const VERSION = 1
const KEY_ID = 4
const NONCE = 12
const TAG = 16
const HEAD = 1 + KEY_ID + NONCE

const CIPHER = 'aes-256-gcm'

/** A box with a key of 32 bytes; `random` is the source of nonces. */
export function createSecretBox(key: Buffer, random: RandomBytes): SecretBox {
  // Tells another key from damage; a key is random, so these bytes of its hash help nobody.
  const mark = Buffer.concat([Buffer.of(VERSION), keyId(key)])

  return {
    seal(text, name) {
      const nonce = random(NONCE)
      const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG })
      cipher.setAAD(boundTo(mark, name))
      const hidden = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return Buffer.concat([mark, nonce, hidden, cipher.getAuthTag()])
    },

    open(sealed, name) {
      if (sealed.length < HEAD + TAG || sealed[0] !== VERSION) return { problem: 'damaged' }
      if (!sealed.subarray(0, mark.length).equals(mark)) {
        return { problem: 'sealed with another key' }
      }
      const nonce = sealed.subarray(mark.length, HEAD)
      const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG })
      decipher.setAAD(boundTo(mark, name))
      decipher.setAuthTag(sealed.subarray(-TAG))
      try {
        const open = [decipher.update(sealed.subarray(HEAD, -TAG)), decipher.final()]
        return { text: Buffer.concat(open).toString('utf8') }
      } catch {
        // The only thing that `final` throws for: the tag does not fit bytes, key and name.
        return { problem: 'damaged' }
      }
    },
  }
}

function keyId(key: Buffer): Buffer {
  return createHash('sha256').update('gatehouse key id').update(key).digest().subarray(0, KEY_ID)
}

function boundTo(mark: Buffer, name: string): Buffer {
  return Buffer.concat([mark, Buffer.from(name)])
}

/** A fresh token: 32 bytes as base64url. `random` is the source of bytes. */
export function makeToken(random: RandomBytes): string {
  return random(32).toString('base64url')
}

/**
 * The presented token: `Authorization: Bearer`, `X-Webhook-Token`, `?token=`, path, in this order.
 */
export function presentedToken(
  headers: IncomingHttpHeaders,
  search: string,
  path: string | undefined,
): string | undefined {
  const { authorization } = headers
  if (authorization !== undefined && /^bearer(?: |$)/i.test(authorization))
    return authorization.slice(7).trim()
  const header = headers['x-webhook-token']
  if (typeof header === 'string') return header
  const query = search.includes('token=') ? new URLSearchParams(search).get('token') : null
  return query ?? path
}

/** Whether a token has the stored hash, in constant time; an empty one never matches. */
export function tokenMatches(token: string, hash: Buffer | null): boolean {
  const same = timingSafeEqual(hashToken(token), hash ?? Buffer.alloc(32))
  return same && hash !== null && token !== ''
}
