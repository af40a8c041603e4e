import type { Database } from '../../db/client.ts'
import {
  addProvider,
  enableProvider,
  listSenders,
  removeProvider,
  rotateSigningSecret,
  rotateToken,
  setAlarm,
  type AlarmChange,
} from '../../db/hooks/providers.ts'
import { hashToken, type RandomBytes } from '../../kernel/token-hash.ts'
import { isSignedProvider, type SigningSecrets } from './signing-secrets.ts'
import { makeSigningSecret, SIGNING_SECRET_FORM, signingKey } from './standard-webhooks.ts'
import { makeToken } from './tokens.ts'

/** What an operator asks for when making a generic provider. */
export interface NewProvider {
  /** The generic name, without `generic:`. */
  readonly name: string
  readonly trust_mode: 'token' | 'signed' | 'open'
  /** The signing secret when the sender has made it; else one is made here. */
  readonly secret?: string | undefined
  /** The explicit acknowledgement that an open provider takes anything from anybody. */
  readonly acknowledgeOpen: boolean
  readonly enabled: boolean
}

/** A provider that was made or got a new secret. */
export interface MadeProvider {
  readonly name: string
  readonly trust_mode: 'token' | 'signed' | 'open'
  /** The token or signing secret that was made, shown this one time; null when none was. */
  readonly token: string | null
}

/** What changes of providers are made with. */
export interface ProviderTools {
  readonly db: Database
  readonly secrets: SigningSecrets
  readonly random: RandomBytes
  readonly now: () => Date
}

/** How a secret is replaced. */
export interface RotationWish {
  /** How long the old one is accepted beside the new one; 0: no longer at all. */
  readonly overlapSeconds: number
  /** The new signing secret when the sender has made it; else one is made here. */
  readonly secret?: string | undefined
}

/** The longest overlap, in seconds. */
export const LONGEST_OVERLAP = 30 * 86_400

/** Why a provider was not made or changed: a closed set, with one line for the operator. */
export interface ProviderRefusal {
  readonly code:
    | 'invalid_name'
    | 'reserved_name'
    | 'not_acknowledged'
    | 'taken'
    | 'not_found'
    | 'no_token'
    | 'no_key'
    | 'invalid_secret'
  readonly message: string
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** True for a name that `/webhooks/generic/{name}` can have (hooks.md section 4). */
export function isGenericName(name: string): boolean {
  return NAME.test(name)
}

/**
 * Makes a generic provider with a fresh token, of which only the hash is stored, or with a signing
 * secret, which is stored encrypted (hooks.md section 3).
 */
export async function createProvider(
  { db, secrets, random }: ProviderTools,
  wanted: NewProvider,
): Promise<MadeProvider | ProviderRefusal> {
  const { trust_mode, acknowledgeOpen, enabled } = wanted
  const refusal = refusedName(wanted.name)
  if (refusal !== undefined) return refusal
  if (trust_mode === 'open' && !acknowledgeOpen) {
    return {
      code: 'not_acknowledged',
      message: 'An open provider takes anything from anybody; acknowledge that to create it.',
    }
  }
  const name = `generic:${wanted.name}`
  const token = trust_mode === 'token' ? makeToken(random) : null
  const signing = trust_mode === 'signed' ? sealSecret(secrets, random, name, wanted.secret) : null
  if (signing !== null && 'code' in signing) return signing
  const added = await addProvider(db, {
    name,
    trust_mode,
    enabled,
    token_hash: token === null ? null : hashToken(token),
    signing_secret: signing?.sealed ?? null,
  })
  if (!added) {
    const message = `There is a provider "${name}" already; choose another name or rotate its ${trust_mode === 'signed' ? 'secret' : 'token'}.`
    return { code: 'taken', message }
  }
  return { name, trust_mode, token: token ?? signing?.made ?? null }
}

function refusedName(name: string): ProviderRefusal | undefined {
  if (!isGenericName(name)) {
    return {
      code: 'invalid_name',
      message: 'The name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.',
    }
  }
  if (!isSignedProvider(name)) return undefined
  return {
    code: 'reserved_name',
    message: `The name "${name}" belongs to a signed provider; choose another one.`,
  }
}

/**
 * Replaces a generic provider's token or signing secret. The old one is accepted until the overlap
 * has passed; one that was still accepted from the rotation before is not from now on.
 */
export async function rotateProvider(
  { db, secrets, random, now }: ProviderTools,
  name: string,
  { overlapSeconds, secret }: RotationWish,
): Promise<MadeProvider | ProviderRefusal> {
  const at = now()
  const until = overlapSeconds === 0 ? null : new Date(at.getTime() + overlapSeconds * 1_000)
  const sender = (await listSenders(db)).find((candidate) => candidate.name === name)
  if (sender?.trust_mode === 'token') {
    if (secret !== undefined) return SECRET_FOR_TOKEN
    const token = makeToken(random)
    const done = await rotateToken(db, name, hashToken(token), { at, until })
    return done ? { name, trust_mode: 'token', token } : noToken(name)
  }
  if (sender?.trust_mode !== 'signed' || isSignedProvider(name)) return noToken(name)
  const signing = sealSecret(secrets, random, name, secret)
  if ('code' in signing) return signing
  const done = await rotateSigningSecret(db, name, signing.sealed, { at, until })
  return done ? { name, trust_mode: 'signed', token: signing.made } : noToken(name)
}

/** A signing secret as it is stored; `made` is the text when it was made here. */
function sealSecret(
  secrets: SigningSecrets,
  random: RandomBytes,
  name: string,
  given: string | undefined,
): { readonly sealed: Buffer; readonly made: string | null } | ProviderRefusal {
  const box = secrets.box()
  if (box === undefined) return NO_KEY
  const text = given ?? makeSigningSecret(random)
  if (signingKey(text) === undefined) {
    return { code: 'invalid_secret', message: `The secret must be ${SIGNING_SECRET_FORM}.` }
  }
  return { sealed: box.seal(text, name), made: given === undefined ? text : null }
}

const NO_KEY: ProviderRefusal = {
  code: 'no_key',
  message:
    'Signing secrets are stored encrypted: set GATEHOUSE_SECRET_KEY, as openssl rand -base64 32 prints one, and start again.',
}
const SECRET_FOR_TOKEN: ProviderRefusal = {
  code: 'invalid_secret',
  message: 'This provider has a token, which is made here; only a signing secret can be given.',
}

function noToken(name: string): ProviderRefusal {
  return {
    code: 'no_token',
    message: `There is no provider "${name}" with a token or a stored secret; see the list of providers.`,
  }
}

/** Sets whether a provider may deliver. */
export async function setProviderEnabled(
  { db, now }: ProviderTools,
  name: string,
  enabled: boolean,
): Promise<ProviderRefusal | undefined> {
  return (await enableProvider(db, name, enabled, now())) ? undefined : notFound(name)
}

/** Sets or turns off alarms of a provider. */
export async function setProviderAlarm(
  { db, now }: ProviderTools,
  name: string,
  change: AlarmChange,
): Promise<ProviderRefusal | undefined> {
  return (await setAlarm(db, name, change, now())) ? undefined : notFound(name)
}

/** Removes a generic or queue provider; its events stay. */
export async function deleteProvider(
  { db }: ProviderTools,
  name: string,
): Promise<ProviderRefusal | undefined> {
  return (await removeProvider(db, name)) ? undefined : notFound(name)
}

function notFound(name: string): ProviderRefusal {
  return {
    code: 'not_found',
    message: `There is no provider "${name}" that this can be done to; see the list of providers.`,
  }
}
