import Type from 'typebox'
import type { Database, Executor } from '../../db/client.ts'
import type { LinkAccess, Owner } from '../../db/links/links.ts'
import { memberQueries as q, type Share } from '../../db/links/members.ts'
import type { User } from '../../db/links/users.ts'
import { field } from '../../kernel/validate.ts'
import { linksFault } from './faults.ts'
import { changeLink, noteChange } from './links.ts'
import { writeHiddenTags } from './tags.ts'
import { userByEmail } from './users.ts'

/** What POST `/links/{id}/owners` and `/shares` take. */
export const NewMember = Type.Object({
  email: field(
    Type.String({ description: 'Address of a known user', examples: ['ann@example.com'] }),
    'is required and must be a string',
  ),
})

/** The same as a form. */
export const MemberForm = Type.Object({ email: field(Type.String(), 'is required') })

/** Who changes which link, and when. */
export interface LinkChange {
  readonly db: Database
  readonly caller: User
  readonly id: string
  readonly at: Date
}

/** Makes a user a co-owner. */
export function addOwner(by: LinkChange, email: string): Promise<Owner> {
  return changeMembers(by, async (tx, { slug }) => {
    const user = await userByEmail(tx, email)
    const added = await q.addOwner(tx, { slug, user: user.id, is_primary: false })
    if (added === undefined) {
      throw linksFault('DUPLICATE_OWNER', 'this user is an owner already', 'email')
    }
    const member = { id: user.id, email: user.email, is_primary: false }
    return { member, action: 'owner added', detail: { owner: [null, user.email] } }
  })
}

/** Removes a co-owner; the primary owner stays. */
export function removeOwner(by: LinkChange, user: string): Promise<void> {
  return changeMembers(by, async (tx, { slug }) => {
    const removed = await q.removeOwner(tx, { slug, user })
    if (removed === undefined) throw linksFault('NOT_FOUND', 'this user is no owner of the link')
    if (removed.is_primary) {
      throw linksFault('PRIMARY_OWNER_PROTECTED', 'cannot remove primary owner')
    }
    const detail = { owner: [removed.email, null] }
    return { member: undefined, action: 'owner removed', detail }
  })
}

/** Lets a user read a link. */
export function shareLink(by: LinkChange, email: string): Promise<Share> {
  return changeMembers(by, async (tx, { slug }) => {
    const user = await userByEmail(tx, email)
    const share = { shared_by: by.caller.email, created_at: by.at }
    if ((await q.addShare(tx, { slug, user: user.id, ...share })) === undefined) {
      throw linksFault('DUPLICATE_SHARE', 'the link is shared with this user already', 'email')
    }
    const member = { id: user.id, email: user.email, ...share }
    return { member, action: 'shared', detail: { share: [null, user.email] } }
  })
}

/** Ends a share. */
export function endShare(by: LinkChange, user: string): Promise<void> {
  return changeMembers(by, async (tx, { slug }) => {
    const removed = await q.removeShare(tx, { slug, user })
    if (removed === undefined) {
      throw linksFault('NOT_FOUND', 'the link is not shared with this user')
    }
    return { member: undefined, action: 'share ended', detail: { share: [removed.email, null] } }
  })
}

/** A change of a link's members, as its history tells it. */
interface MemberChange<Member> {
  readonly member: Member
  readonly action: string
  readonly detail: Record<string, unknown[]>
}

/** Changes who has a link, what they see of its tags, and its history. */
function changeMembers<Member>(
  { db, caller, id, at }: LinkChange,
  change: (tx: Executor, link: LinkAccess) => Promise<MemberChange<Member>>,
): Promise<Member> {
  return changeLink(db, caller, id, async (tx, link) => {
    const { member, action, detail } = await change(tx, link)
    await writeHiddenTags(tx, [link.slug])
    await noteChange(tx, id, caller, at, action, detail)
    return member
  })
}
