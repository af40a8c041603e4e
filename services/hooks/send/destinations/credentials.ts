import type { SealedCredentials } from '../../../../db/hooks/send/destinations.ts'
import type { SecretBox } from '../../../../kernel/secret-box.ts'
import { isOfHttp } from '../replays/outgoing.ts'
import { secretForm } from '../../receive/schemes/describe.ts'
import { keyOf } from '../../receive/schemes/keys.ts'
import { schemeNamed } from '../../receive/schemes/schemes.ts'
import type { Scheme, Key } from '../../receive/schemes/scheme.ts'
import type { SigningSecrets } from '../../receive/schemes/signing-secrets.ts'
import { CONFIGURED, unprocessable, type GivenCredentials } from './form.ts'

// The credentials with which a destination proves itself to its receiver. They are stored
// encrypted, each bound to its place, and never shown again.

/** Those of a new destination. */
export const NO_CREDENTIALS: SealedCredentials = {
  sign_scheme: null,
  sign_secret: null,
  auth: null,
  headers: {},
}

const MAX_HEADERS = 20
/** Characters; of an answer so much more is read that such a text is found whole. */
const MAX_CREDENTIAL = 4_096

/** Where a secret is stored, which its encryption is bound to. */
type Place = 'sign_with' | 'authorization' | `header ${string}`

interface Sealer {
  secrets: SigningSecrets
  /** Of the destination. */
  name: string
}

/**
 * The credentials as they are stored after a change: what is not given stays, and null removes it.
 * Throws 422 for one that no receiver could be sent, and without a key to encrypt it.
 */
export function sealCredentials(
  sealer: Sealer,
  present: SealedCredentials,
  given: GivenCredentials,
): SealedCredentials {
  const sealed = {
    ...sealSigning(sealer, present, given),
    auth: sealAuthorization(sealer, present, given),
    headers: sealHeaders(sealer, present, given),
  }
  refuseHeaders(sealed)
  return sealed
}

function sealSigning(
  sealer: Sealer,
  { sign_scheme, sign_secret }: SealedCredentials,
  { sign_with: given }: GivenCredentials,
): Pick<SealedCredentials, 'sign_scheme' | 'sign_secret'> {
  if (given === undefined) return { sign_scheme, sign_secret }
  if (given === null || given.secret === null) return { sign_scheme: null, sign_secret: null }
  const scheme = given.scheme ?? sign_scheme ?? 'standard'
  const { secret = CONFIGURED } = given
  const form = `the secret of sign_with must be ${secretForm(scheme)}`
  if (secret !== CONFIGURED) {
    if (keyOf(scheme, secret) === undefined) throw unprocessable(`${form}.`, 'sign_with')
    return { sign_scheme: scheme, sign_secret: seal(sealer, 'sign_with', secret, 'sign_with') }
  }
  if (sign_secret === null) {
    throw unprocessable(`the secret of sign_with is missing: ${form}.`, 'sign_with')
  }
  if (scheme !== sign_scheme) {
    const stored = open(sealer, 'sign_with', sign_secret)
    const fits = 'text' in stored && keyOf(scheme, stored.text) !== undefined
    if (!fits) {
      throw unprocessable(
        `${form}; give one, because the stored one has another form.`,
        'sign_with',
      )
    }
  }
  return { sign_scheme: scheme, sign_secret }
}

const BEARER = /^bearer +([\x21-\x7e]+)$/i
const BASIC = /^basic +(\S.*)$/i
const BASE64 = /^[a-z\d+/]+={0,2}$/i
const AUTHORIZATION_FORM = 'authorization must be "Bearer TOKEN", or "Basic NAME:PASSWORD"'

function sealAuthorization(
  sealer: Sealer,
  { auth }: SealedCredentials,
  { authorization: given }: GivenCredentials,
): Buffer | null {
  if (given === undefined || given === null) return given === null ? null : auth
  if (given === CONFIGURED && auth !== null) return auth
  const value = readAuthorization(given)
  if (value === undefined) throw unprocessable(`${AUTHORIZATION_FORM}.`, 'authorization')
  return seal(sealer, 'authorization', value, 'authorization')
}

/** The value of the header; the pair of Basic may be given as it is, or as base64. */
function readAuthorization(given: string): string | undefined {
  const [, token] = BEARER.exec(given.trim()) ?? []
  const [, pair] = BASIC.exec(given.trim()) ?? []
  const encoded = pair?.includes(':') ? Buffer.from(pair).toString('base64') : pair
  const isBasic = encoded !== undefined && BASE64.test(encoded) && pairIn(encoded).includes(':')
  const value = token === undefined ? isBasic && `Basic ${encoded}` : `Bearer ${token}`
  return value !== false && value.length <= MAX_CREDENTIAL ? value : undefined
}

function pairIn(encoded: string): string {
  return Buffer.from(encoded, 'base64').toString('utf8')
}

const NAME = /^[a-z\d][a-z\d!#$%&'*+.^_`|~-]{0,99}$/
const VALUE = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/
/** What Gatehouse sets. */
const OWN = /^(?:content-type|idempotency-key|cdn-loop|x-gatehouse-.*)$/

function sealHeaders(
  sealer: Sealer,
  { headers: stored }: SealedCredentials,
  { headers: given }: GivenCredentials,
): SealedCredentials['headers'] {
  if (given === undefined || given === null) return given === null ? {} : stored
  const sealed = new Map(Object.entries(stored))
  for (const [shown, value] of Object.entries(given)) {
    const name = shown.toLowerCase()
    refuseName(name)
    if (value === null) sealed.delete(name)
    else if (value !== CONFIGURED || !sealed.has(name)) {
      if (!VALUE.test(value) || value.length > MAX_CREDENTIAL) {
        const form = `printable ASCII, at most ${MAX_CREDENTIAL} characters`
        throw unprocessable(`the value of the header ${name} must be ${form}.`, 'headers')
      }
      const bytes = seal(sealer, `header ${name}`, value, 'headers')
      sealed.set(name, bytes.toString('base64'))
    }
  }
  return Object.fromEntries(sealed)
}

function refuseName(name: string): void {
  if (!NAME.test(name)) {
    throw unprocessable('headers must have names such as X-Tenant, without spaces.', 'headers')
  }
  if (name === 'authorization') {
    throw unprocessable(
      'headers must not have authorization: it has a field of its own.',
      'headers',
    )
  }
  if (isOfHttp(name) || OWN.test(name)) {
    throw unprocessable(`headers must not have ${name}: it is set by Gatehouse itself.`, 'headers')
  }
}

/** The signature of a later change must not meet a header of its name either. */
function refuseHeaders({ headers, sign_scheme }: SealedCredentials): void {
  const names = Object.keys(headers)
  if (names.length > MAX_HEADERS) {
    throw unprocessable(`headers must be ${MAX_HEADERS} at most.`, 'headers')
  }
  const scheme = schemeNamed(sign_scheme)
  const taken = scheme && names.find((name) => signatureHeaders(scheme).includes(name))
  if (taken === undefined) return
  throw unprocessable(`headers must not have ${taken}: the signature is there.`, 'headers')
}

/** The headers of a signature. */
function signatureHeaders({ signature, timestamp, signed, id }: Scheme): readonly string[] {
  return [...signature, ...timestamp, ...(signed.includes('{id}') ? id.headers : [])]
}

function seal({ secrets, name }: Sealer, place: Place, text: string, field: string): Buffer {
  if (text === CONFIGURED) {
    const message = `${field} has no secret that "${CONFIGURED}" stands for; give the secret.`
    throw unprocessable(message, field)
  }
  const box = secrets.box()
  if (box === undefined) throw unprocessable(NO_KEY, field)
  return box.seal(text, boundTo(name, place))
}

const NO_KEY =
  'Secrets of destinations are stored encrypted: set GATEHOUSE_SECRET_KEY, ' +
  'as openssl rand -base64 32 prints one, and start again.'

function boundTo(name: string, place: Place): string {
  return `destination ${name} ${place}`
}

function open(
  { secrets, name }: Sealer,
  place: Place,
  sealed: Buffer,
): ReturnType<SecretBox['open']> | { problem: string } {
  const box = secrets.box()
  if (box === undefined) return { problem: 'GATEHOUSE_SECRET_KEY is not set' }
  return box.open(sealed, boundTo(name, place))
}

/** What is sent with each event. */
export interface Credentials {
  sign: { scheme: Scheme; key: Key } | undefined
  headers: Readonly<Record<string, string>>
  /** All texts that must not be kept of an answer. */
  texts: readonly string[]
}

/** Decrypts the credentials of a destination, or says why that is not possible. */
export function openCredentials(
  secrets: SigningSecrets,
  target: SealedCredentials & { name: string },
): Credentials | { problem: string } {
  const sealer = { secrets, name: target.name }
  const { sign_scheme, sign_secret, auth } = target
  const headers: Record<string, string> = {}
  for (const [name, sealed] of Object.entries(target.headers)) {
    const value = open(sealer, `header ${name}`, Buffer.from(sealed, 'base64'))
    if ('problem' in value) return unreadable(value.problem)
    headers[name] = value.text
  }
  if (auth !== null) {
    const value = open(sealer, 'authorization', auth)
    if ('problem' in value) return unreadable(value.problem)
    headers['authorization'] = value.text
  }
  const texts = textsIn(headers)
  if (sign_scheme === null || sign_secret === null) return { sign: undefined, headers, texts }
  const secret = open(sealer, 'sign_with', sign_secret)
  if ('problem' in secret) return unreadable(secret.problem)
  const scheme = schemeNamed(sign_scheme)
  const key = keyOf(sign_scheme, secret.text)
  if (scheme === undefined || key === undefined) return unreadable('damaged')
  return { sign: { scheme, key }, headers, texts: [...texts, secret.text] }
}

function unreadable(problem: string) {
  return { problem: `the credentials of the destination can't be read: ${problem}` }
}

/** Shorter texts are no secret, and may be anywhere in an answer. */
const MIN_SECRET = 4

/** The values, and the parts of Authorization that a receiver may give back by themselves. */
function textsIn(headers: Readonly<Record<string, string>>): readonly string[] {
  const { authorization = '' } = headers
  const [, part = ''] = /^\S+ (.*)$/.exec(authorization) ?? []
  const pair = authorization.startsWith('Basic ') ? pairIn(part) : ''
  const password = pair.slice(pair.indexOf(':') + 1)
  const texts = [...Object.values(headers), part, pair, password]
  return texts.filter((text) => text.length >= MIN_SECRET)
}
