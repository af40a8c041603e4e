import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { Owner, Share } from './rows.ts'

/** The owners of a link, the primary one first. */
export function listOwners(db: Executor, link: string): Promise<readonly Owner[]> {
  return many(db, q.listOwners, [link])
}

/** False when the user is an owner already. */
export async function addOwner(
  tx: Executor,
  slug: string,
  user: string,
  isPrimary: boolean,
): Promise<boolean> {
  return (await optional(tx, q.addOwner, [slug, user, isPrimary])) !== undefined
}

/** Removes a co-owner. The primary owner stays; undefined when the user is no owner. */
export function removeOwner(
  tx: Executor,
  slug: string,
  user: string,
): Promise<Pick<Owner, 'is_primary'> | undefined> {
  return optional(tx, q.removeOwner, [slug, user])
}

/** With whom a link is shared. */
export function listShares(db: Executor, link: string): Promise<readonly Share[]> {
  return many(db, q.listShares, [link])
}

/** False when the link is shared with the user already. */
export async function addShare(
  tx: Executor,
  slug: string,
  user: string,
  { shared_by, created_at }: Pick<Share, 'shared_by' | 'created_at'>,
): Promise<boolean> {
  return (await optional(tx, q.addShare, [slug, user, shared_by, created_at])) !== undefined
}

/** Ends a share and gives its recipient's address; undefined when the link is not shared with the user. */
export function removeShare(
  tx: Executor,
  slug: string,
  user: string,
): Promise<Pick<Share, 'email'> | undefined> {
  return optional(tx, q.removeShare, [slug, user])
}
