import type { Database } from '../../db/client.ts'
import { saveChange } from '../../db/links/links.ts'
import {
  addOwner,
  listOwners,
  removeOwner,
  addShare,
  listShares,
  removeShare,
} from '../../db/links/members.ts'
import type { Owner, Share } from '../../db/links/rows.ts'
import type { User } from '../../db/links/users.ts'
import { writeHiddenTags } from '../../db/links/tags.ts'
import { linkFor, changed, changeLink, undo } from './links.ts'
import { isRefusal, refusal, type Refusal } from './refusal.ts'
import { userByEmail } from './users.ts'

/** The owners of a link that the caller may read, the primary one first. */
export async function ownersOf(
  db: Database,
  caller: User,
  id: string,
): Promise<readonly Owner[] | Refusal> {
  const link = await linkFor(db, id, caller, 'read')
  return isRefusal(link) ? link : listOwners(db, id)
}

/** Makes somebody a co-owner. */
export function giveOwnership(
  db: Database,
  caller: User,
  id: string,
  email: string,
  at: Date,
): Promise<Owner | Refusal> {
  return changeLink(db, caller, id, async (tx, link) => {
    const user = await userByEmail(tx, email)
    if (isRefusal(user)) return undo(user)
    if (!(await addOwner(tx, link.slug, user.id, false))) {
      return undo(refusal('DUPLICATE_OWNER', 'this user is an owner already', 'email'))
    }
    await writeHiddenTags(tx, [link.slug])
    await saveChange(tx, id, changed(caller, at, 'owner added', { owner: [null, user.email] }))
    return { id: user.id, email: user.email, is_primary: false }
  })
}

/** Ends a co-ownership; the primary owner stays. */
export function endOwnership(
  db: Database,
  caller: User,
  id: string,
  owner: string,
  at: Date,
): Promise<Refusal | undefined> {
  return changeLink(db, caller, id, async (tx, link) => {
    const removed = await removeOwner(tx, link.slug, owner)
    if (removed === undefined) {
      return undo(refusal('NOT_FOUND', 'this user is no owner of the link'))
    }
    if (removed.is_primary) {
      return undo(refusal('PRIMARY_OWNER_PROTECTED', 'cannot remove primary owner'))
    }
    await writeHiddenTags(tx, [link.slug])
    const email = link.owners.find((candidate) => candidate.id === owner)?.email ?? owner
    await saveChange(tx, id, changed(caller, at, 'owner removed', { owner: [email, null] }))
    return undefined
  })
}

/** With whom a link is shared that the caller may read. */
export async function sharesOf(
  db: Database,
  caller: User,
  id: string,
): Promise<readonly Share[] | Refusal> {
  const link = await linkFor(db, id, caller, 'read')
  return isRefusal(link) ? link : listShares(db, id)
}

/** Lets somebody read a link. */
export function shareLink(
  db: Database,
  caller: User,
  id: string,
  email: string,
  at: Date,
): Promise<Share | Refusal> {
  return changeLink(db, caller, id, async (tx, link) => {
    const user = await userByEmail(tx, email)
    if (isRefusal(user)) return undo(user)
    const share = { shared_by: caller.email, created_at: at }
    if (!(await addShare(tx, link.slug, user.id, share))) {
      return undo(refusal('DUPLICATE_SHARE', 'the link is shared with this user already', 'email'))
    }
    await writeHiddenTags(tx, [link.slug])
    await saveChange(tx, id, changed(caller, at, 'shared', { share: [null, user.email] }))
    return { id: user.id, email: user.email, ...share }
  })
}

/** Ends a share. */
export function endShare(
  db: Database,
  caller: User,
  id: string,
  recipient: string,
  at: Date,
): Promise<Refusal | undefined> {
  return changeLink(db, caller, id, async (tx, link) => {
    const share = await removeShare(tx, link.slug, recipient)
    if (share === undefined) {
      return undo(refusal('NOT_FOUND', 'the link is not shared with this user'))
    }
    await writeHiddenTags(tx, [link.slug])
    await saveChange(tx, id, changed(caller, at, 'share ended', { share: [share.email, null] }))
    return undefined
  })
}
