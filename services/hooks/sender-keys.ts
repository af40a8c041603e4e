import type { Sender } from '../../db/hooks/rows.ts'
import type { HmacKeys } from './hmac.ts'
import type { SigningSecrets } from './signing-secrets.ts'
import { signingKey } from './standard-webhooks.ts'

/** The keys of a generic provider that signs, decrypted. */
export interface SenderKeys {
  readonly current: Buffer
  /** The one before the last rotation; undefined without one, and when it can't be read. */
  readonly previous: Buffer | undefined
}

/** A stored secret, or why it can't be read. */
export type StoredSecret = { readonly text: string } | { readonly problem: string }

/** Decrypts the stored signing secret of a generic provider. */
export function openSecret(secrets: SigningSecrets, name: string, sealed: Buffer): StoredSecret {
  const box = secrets.box()
  return box === undefined ? { problem: 'GATEHOUSE_SECRET_KEY is not set' } : box.open(sealed, name)
}

/** The keys of a provider that signs; a problem when the present one can't be read. */
export function readKeys(
  secrets: SigningSecrets,
  { name, signing_secret, retired_signing_secret }: Sender,
): SenderKeys | { readonly problem: string } {
  if (signing_secret === null) return { problem: 'there is no secret' }
  const opened = openSecret(secrets, name, signing_secret)
  if ('problem' in opened) return opened
  const current = signingKey(opened.text)
  if (current === undefined) return { problem: 'damaged' }
  const retired =
    retired_signing_secret === null ? undefined : openSecret(secrets, name, retired_signing_secret)
  const previous =
    retired === undefined || 'problem' in retired ? undefined : signingKey(retired.text)
  return { current, previous }
}

/** Whether the token or secret before the last rotation is still accepted at a time. */
export function acceptsPrevious({ retired_until }: Sender, at: Date): boolean {
  return retired_until !== null && at < retired_until
}

/** The keys that count for a delivery of a time. */
export function keysAt({ current, previous }: SenderKeys, sender: Sender, at: Date): HmacKeys {
  if (previous === undefined) return { accepted: [current], retired: [] }
  return acceptsPrevious(sender, at)
    ? { accepted: [current, previous], retired: [] }
    : { accepted: [current], retired: [previous] }
}
