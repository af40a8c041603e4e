import type { Database } from '../../db/client.ts'
import {
  addProvider,
  enableProvider,
  removeProvider,
  rotateToken,
} from '../../db/hooks/providers.ts'
import { isSignedProvider } from './signing-secrets.ts'
import { hashToken, makeToken } from './tokens.ts'

/** A source of random bytes, such as `randomBytes` of node:crypto. */
export type RandomBytes = (size: number) => Buffer

/** What an operator asks for when making a generic provider. */
export interface NewProvider {
  /** The generic name, without `generic:`. */
  readonly name: string
  readonly trust_mode: 'token' | 'open'
  /** The explicit acknowledgement that an open provider takes anything from anybody. */
  readonly acknowledgeOpen: boolean
  readonly enabled: boolean
}

/** A provider that was made; `token` is shown this one time and null for an open one. */
export interface MadeProvider {
  readonly name: string
  readonly token: string | null
}

/** Why a provider was not made or changed: a closed set, with one line for the operator. */
export interface ProviderRefusal {
  readonly code:
    | 'invalid_name'
    | 'reserved_name'
    | 'not_acknowledged'
    | 'taken'
    | 'not_found'
    | 'no_token'
  readonly message: string
}

const NAME = /^[a-z0-9][a-z0-9_-]{0,63}$/

/** True for a name that `/webhooks/generic/{name}` can have (hooks.md section 4). */
export function isGenericName(name: string): boolean {
  return NAME.test(name)
}

/** Makes a generic provider with a fresh token (hooks.md section 3); only the token's hash is stored. */
export async function createProvider(
  db: Database,
  random: RandomBytes,
  wanted: NewProvider,
): Promise<MadeProvider | ProviderRefusal> {
  const { name, trust_mode, acknowledgeOpen, enabled } = wanted
  if (!isGenericName(name)) {
    return {
      code: 'invalid_name',
      message: 'The name must be 1 to 64 of a-z, 0-9, _ and -, and start with a letter or digit.',
    }
  }
  if (isSignedProvider(name)) {
    return {
      code: 'reserved_name',
      message: `The name "${name}" belongs to a signed provider; choose another one.`,
    }
  }
  if (trust_mode === 'open' && !acknowledgeOpen) {
    return {
      code: 'not_acknowledged',
      message: 'An open provider takes anything from anybody; acknowledge that to create it.',
    }
  }
  const token = trust_mode === 'token' ? makeToken(random) : null
  const token_hash = token === null ? null : hashToken(token)
  const provider = { name: `generic:${name}`, trust_mode, enabled, token_hash }
  if (!(await addProvider(db, provider))) {
    return {
      code: 'taken',
      message: `There is a provider "generic:${name}" already; choose another name or rotate its token.`,
    }
  }
  return { name: provider.name, token }
}

/** Replaces a generic provider's token; the old one stops to work at once. */
export async function rotateProvider(
  db: Database,
  random: RandomBytes,
  name: string,
): Promise<MadeProvider | ProviderRefusal> {
  const token = makeToken(random)
  if (await rotateToken(db, name, hashToken(token))) return { name, token }
  return {
    code: 'no_token',
    message: `There is no provider "${name}" with a token; see the list of providers.`,
  }
}

/** Sets whether a provider may deliver. */
export async function setProviderEnabled(
  db: Database,
  name: string,
  enabled: boolean,
): Promise<ProviderRefusal | undefined> {
  return (await enableProvider(db, name, enabled)) ? undefined : notFound(name)
}

/** Removes a generic or queue provider; its events stay. */
export async function deleteProvider(
  db: Database,
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
