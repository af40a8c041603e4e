import * as Type from '../../../../kernel/schema.ts'
import type { Database, Executor } from '../../../../db/client.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import type { Link, LinkAccess, Owner } from '../../../../db/links/names/links.ts'
import { memberQueries as q, type Share } from '../../../../db/links/names/members.ts'
import type { User } from '../../../../db/links/people/users.ts'
import { badRequest, forbidden, notFound } from '../../../../kernel/fault.ts'
import type { Precondition } from '../../../../kernel/http/headers.ts'
import { field } from '../../../../kernel/validate.ts'
import { linksFault } from '../../faults.ts'
import { changeLink, checkVersion, linkAfter, linkFor } from '../links/links.ts'
import { writeTexts } from '../lists/texts.ts'
import { writeHiddenTags } from '../tags.ts'
import { userByEmail } from '../../people/users/accounts.ts'
import { ensureGroup } from '../../people/users/added-groups.ts'
import { isGroup, type Caller } from '../../people/users/groups.ts'

/** The user to make an owner of a link, or the user or group to share it with. */
export const NewMember = Type.Object({
  email: field(
    Type.String({
      description: 'Address of a known user. Co-owners and recipients may be groups: `group:ops`.',
      examples: ['ann@example.com'],
    }),
    'is required and must be a string',
  ),
})

/** Who changes which link, and when. */
export interface LinkChange {
  db: Database
  caller: Caller
  id: string
  at: Date
  /** Whether the trusted proxy names groups. */
  takesGroups: boolean
}

/** Co-owners may change a link. Users that it is shared with may only read it. */
export interface MemberKind {
  /** Its name in the history. */
  field: string
  actions: { add: string; remove: string }
  rows(db: Executor, of: { link: string }): Promise<readonly Pick<User, 'email'>[]>
  /** Undefined when the user is a member of this kind already. */
  add(tx: Executor, slug: string, user: User, by: LinkChange): Promise<Owner | Share | undefined>
  duplicate: readonly [code: 'DUPLICATE_OWNER' | 'DUPLICATE_SHARE', message: string]
  /** Undefined when the user is not a member of this kind. */
  remove(tx: Executor, slug: string, user: string): Promise<Pick<User, 'email'> | undefined>
  missing: string
}

export const OWNERS: MemberKind = {
  field: 'owner',
  actions: { add: 'owner added', remove: 'owner removed' },
  rows: q.listOwners,
  async add(tx, slug, { id, email }) {
    const added = await q.addOwner(tx, { slug, user: id, is_primary: false })
    return added && { id, email, ...added }
  },
  duplicate: ['DUPLICATE_OWNER', 'this user is an owner already'],
  async remove(tx, slug, user) {
    const removed = await q.removeOwner(tx, { slug, user })
    if (removed?.is_primary !== true) return removed
    throw linksFault('PRIMARY_OWNER_PROTECTED', 'cannot remove primary owner')
  },
  missing: 'this user is no owner of the link',
}

export const SHARES: MemberKind = {
  field: 'share',
  actions: { add: 'shared', remove: 'share ended' },
  rows: q.listShares,
  async add(tx, slug, { id, email }, { caller, at }) {
    const share = { shared_by: caller.email, created_at: at }
    const added = await q.addShare(tx, { slug, user: id, ...share })
    return added && { id, email, ...share }
  },
  duplicate: ['DUPLICATE_SHARE', 'the link is shared with this user already'],
  remove: (tx, slug, user) => q.removeShare(tx, { slug, user }),
  missing: 'the link is not shared with this user',
}

/** The user, or group, that is to be a member of a link. Throws 404 for unknown people. */
export function memberFor(
  tx: Executor,
  text: string,
  by: Pick<LinkChange, 'takesGroups' | 'at'>,
): Promise<User> {
  return isGroup(text) ? ensureGroup(tx, text, by) : userByEmail(tx, text)
}

/** Makes a user, or a group, a member of a link. */
export function addMember(kind: MemberKind, by: LinkChange, email: string) {
  return changeLink(by.db, by.caller, by.id, async (tx, { slug }) => {
    const user = await memberFor(tx, email, by)
    if (isGroup(user.email)) await refuseMoreGroups(kind, tx, by.id)
    if (kind === SHARES) await refuseOwner(tx, by.id, user)
    const member = await kind.add(tx, slug, user, by)
    if (member === undefined) throw linksFault(...kind.duplicate, 'email')
    await noteMembers(tx, by, slug, kind.actions.add, { [kind.field]: [null, user.email] })
    return member
  })
}

/**
 * Refuses a share with the primary owner, who always may read the link. A co-owner may have one: it
 * counts once the ownership ends.
 */
async function refuseOwner(tx: Executor, link: string, { id }: User): Promise<void> {
  const owners = await q.listOwners(tx, { link })
  if (!owners.some((owner) => owner.is_primary && owner.id === id)) return
  throw linksFault('DUPLICATE_SHARE', 'this user owns the link, and may read it already', 'email')
}

/** Groups of a kind that a link may have: anybody can make up names, and its page shows all. */
const MAX_GROUPS = 100

async function refuseMoreGroups(kind: MemberKind, tx: Executor, link: string): Promise<void> {
  const members = await kind.rows(tx, { link })
  if (members.filter(({ email }) => isGroup(email)).length < MAX_GROUPS) return
  throw badRequest(
    `a link takes ${MAX_GROUPS} groups; remove one that is not needed first`,
    'email',
  )
}

/** Removes a member of a link; the primary owner stays. */
export function removeMember(kind: MemberKind, by: LinkChange, user: string) {
  return changeLink(by.db, by.caller, by.id, async (tx, { slug }) => {
    const removed = await kind.remove(tx, slug, user)
    if (removed === undefined) throw notFound(kind.missing)
    await noteMembers(tx, by, slug, kind.actions.remove, { [kind.field]: [removed.email, null] })
  })
}

/** The primary owner of a link. */
function primaryOf({ owners }: Pick<Link, 'owners'>): Owner | undefined {
  return owners.find(({ is_primary }) => is_primary)
}

/** Its primary owner and admins may hand a link over. Co-owners can't take it from its owner. */
export function mayHandOver(link: LinkAccess, caller: Caller): boolean {
  return caller.role === 'admin' || primaryOf(link)?.id === caller.id
}

/** A link that the caller may hand over. Throws 404, then 403. */
export async function linkToHandOver(
  db: Executor,
  id: string,
  caller: Caller,
): Promise<LinkAccess> {
  const link = await linkFor(db, id, caller, 'change')
  if (mayHandOver(link, caller)) return link
  throw forbidden('only the primary owner of a link, or an admin, may hand it over')
}

/** Throws 400 for a user who can't look after a link. */
export function refuseDisabledOwner({ disabled_at }: User): void {
  if (disabled_at === null) return
  throw badRequest('this user is disabled, so the link would have no active owner', 'email')
}

/** Makes a user the primary owner of a link. The former one stays a co-owner. */
export function handOver(
  by: LinkChange,
  email: string,
  precondition?: Precondition,
): Promise<Link> {
  return changeLink(by.db, by.caller, by.id, async (tx) => {
    const link = await linkToHandOver(tx, by.id, by.caller)
    checkVersion(link, precondition)
    const { slug } = link
    const former = primaryOf(link)
    const user = await userByEmail(tx, email)
    refuseDisabledOwner(user)
    if (user.id !== former?.id) {
      await q.makeCoOwner(tx, { slug })
      await q.makePrimary(tx, { slug, user: user.id })
      const detail = { owner: [former?.email ?? null, user.email] }
      await noteMembers(tx, by, slug, 'handed over', detail)
    }
    return linkAfter(tx, by.id)
  })
}

/** Records a change of members, and what they now see and find of the link. */
async function noteMembers(
  tx: Executor,
  { id, caller, at }: LinkChange,
  slug: string,
  action: string,
  detail: Record<string, unknown[]>,
): Promise<void> {
  await writeHiddenTags(tx, [slug])
  await writeTexts(tx, [slug])
  await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, action, detail })
}
