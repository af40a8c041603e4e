import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Activity, Provider, SecretName, Sender, TrustMode } from './rows.ts'

/** All providers; the two times start the counts of recent events and of refusals. */
export function listProviders(
  db: Executor,
  recentSince: Date,
  refusedSince: Date,
): Promise<readonly Provider[]> {
  return many(db, q.listProviders, [recentSince, refusedSince])
}

/** What the receivers check of every provider. */
export function listSenders(db: Executor): Promise<readonly Sender[]> {
  return many(db, q.listSenders, [])
}

export function listActivity(db: Executor, since: Date): Promise<readonly Activity[]> {
  return many(db, q.listActivity, [since])
}

/** False when the name is taken. */
export async function addProvider(
  db: Executor,
  provider: {
    name: string
    trust_mode: TrustMode
    enabled: boolean
    token_hash: Buffer | null
    /** Encrypted. */
    signing_secret: Buffer | null
  },
): Promise<boolean> {
  const { name, trust_mode, enabled, token_hash, signing_secret } = provider
  const args = [name, trust_mode, enabled, token_hash, signing_secret]
  return (await optional(db, q.addProvider, args)) !== undefined
}

/** Makes the providers of channels known; those that are known stay as they are. */
export async function addQueueProviders(db: Executor, names: readonly string[]): Promise<void> {
  await db.run(q.addQueueProviders, [names])
}

/** False when there is no such provider. */
export async function enableProvider(
  db: Executor,
  name: string,
  enabled: boolean,
  at: Date,
): Promise<boolean> {
  return (await optional(db, q.enableProvider, [name, enabled, at])) !== undefined
}

/** When a secret is replaced, and until when the old one is accepted as well; null: no longer. */
export interface Rotation {
  readonly at: Date
  readonly until: Date | null
}

/** False when there is no generic provider with a token under that name. */
export async function rotateToken(
  db: Executor,
  name: string,
  tokenHash: Buffer,
  { at, until }: Rotation,
): Promise<boolean> {
  return (await optional(db, q.rotateToken, [name, tokenHash, at, until])) !== undefined
}

/** False when there is no generic provider that signs under that name; `sealed` is encrypted. */
export async function rotateSigningSecret(
  db: Executor,
  name: string,
  sealed: Buffer,
  { at, until }: Rotation,
): Promise<boolean> {
  return (await optional(db, q.rotateSigningSecret, [name, sealed, at, until])) !== undefined
}

/** A use of a provider's secret; `rotated_at` is the provider's own as it was then. */
export interface SecretUse {
  readonly provider: string
  readonly secret: SecretName
  readonly at: Date
  readonly rotated_at: Date | null
}

/** Notes which secret was used last; one use a provider. */
export async function saveSecretUses(db: Executor, uses: readonly SecretUse[]): Promise<void> {
  await db.run(q.saveSecretUses, [uses])
}

/** What to set of a provider's alarms: null turns one off, an absent one stays. */
export interface AlarmChange {
  readonly expected_interval_s?: number | null
  readonly rejection_burst?: number | null
}

/** False when there is no such provider. */
export async function setAlarm(
  db: Executor,
  name: string,
  { expected_interval_s: interval, rejection_burst: burst }: AlarmChange,
  at: Date,
): Promise<boolean> {
  const args = [interval !== undefined, interval ?? null, burst !== undefined, burst ?? null]
  return (await optional(db, q.setAlarm, [name, ...args, at])) !== undefined
}

/** False when there is no generic or queue provider under that name. */
export async function removeProvider(db: Executor, name: string): Promise<boolean> {
  return (await optional(db, q.removeProvider, [name])) !== undefined
}
