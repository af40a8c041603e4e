import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { hooksQueries as q } from './queries.ts'
import type { Activity, Provider, Sender, TrustMode } from './rows.ts'

/** All providers; `since` starts the count of recent events. */
export function listProviders(db: Executor, since: Date): Promise<readonly Provider[]> {
  return many(db, q.listProviders, [since])
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
  provider: { name: string; trust_mode: TrustMode; enabled: boolean; token_hash: Buffer | null },
): Promise<boolean> {
  const { name, trust_mode, enabled, token_hash } = provider
  return (await optional(db, q.addProvider, [name, trust_mode, enabled, token_hash])) !== undefined
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
): Promise<boolean> {
  return (await optional(db, q.enableProvider, [name, enabled])) !== undefined
}

/** False when there is no generic provider with a token under that name. */
export async function rotateToken(db: Executor, name: string, tokenHash: Buffer): Promise<boolean> {
  return (await optional(db, q.rotateToken, [name, tokenHash])) !== undefined
}

/** False when there is no generic or queue provider under that name. */
export async function removeProvider(db: Executor, name: string): Promise<boolean> {
  return (await optional(db, q.removeProvider, [name])) !== undefined
}
