import type { Provider, SecretName } from '../../../../db/hooks/receive/providers.ts'
import type { SecretBox } from '../../../../kernel/secret-box.ts'
import type { SignedProvider } from './provider-names.ts'
import type { Key } from './scheme.ts'

/**
 * Secrets of a signed provider: all `accepted` ones verify; `retired` ones only explain a
 * mismatch.
 */
export interface ProviderSecrets {
  accepted: readonly string[]
  retired: readonly string[]
  /** When this process found the accepted ones configured: a use noted before is of others. */
  since: Date
}

/** The key in a stored secret, or why it can't be read. */
export type StoredKey = { key: Key } | { problem: string }

/** A provider with a stored secret. */
export type Sealed = Pick<Provider, 'name' | 'scheme' | 'signing_secret'> &
  Partial<Pick<Provider, 'previous_signing_secret'>>

/** The secrets by which deliveries are signed. */
export interface SigningSecrets {
  /** The configured secrets of a signed provider; undefined before they are configured. */
  of(provider: SignedProvider): ProviderSecrets | undefined
  /**
   * Encrypts the stored secrets of providers, the same while its key is; undefined without a key.
   */
  box(): SecretBox | undefined
  /** The key in a stored secret of a provider. */
  keyIn(provider: Sealed, which?: SecretName): StoredKey
}
