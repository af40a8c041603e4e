import type { Executor } from '../../../../db/client.ts'
import { userQueries as q, type User } from '../../../../db/links/people/users.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { GROUP_NAME_FORM, readGroupName } from '../../../../kernel/net/identity.ts'

/** A user who calls, with the groups that the proxy names in this request. */
export interface Caller extends User {
  /** Such as `group:ops`; also groups that no link has. */
  groups: readonly string[]
  /** The ids by which links know the caller: the own one, and those of the groups. */
  ids: readonly string[]
}

/** Tells groups from people among the users: no e-mail address of a person has a colon. */
const PREFIX = 'group:'

const NOT_SET_UP =
  'groups are not set up here; they take GATEHOUSE_GROUPS_HEADER, ' +
  'the header in which the trusted proxy names them'

/** Whether a text means a group, as in `group:ops`. */
export function isGroup(text: string): boolean {
  return text.trim().toLowerCase().startsWith(PREFIX)
}

/** A group as it is stored; undefined for other text. */
export function readGroup(text: string): string | undefined {
  if (!isGroup(text)) return undefined
  const name = readGroupName(text.trim().slice(PREFIX.length))
  return name === undefined ? undefined : PREFIX + name
}

/** A caller without groups: the holder of a token, or a command on this machine. */
export function withoutGroups<U extends User>(user: U): U & Caller {
  return { ...user, groups: [], ids: [user.id] }
}

/** A caller with the groups that the proxy names. Groups that no link has are no users yet. */
export async function withGroups(
  db: Executor,
  user: User,
  names: readonly string[],
): Promise<Caller> {
  if (names.length === 0) return withoutGroups(user)
  const groups = names.map((name) => PREFIX + name)
  const known = await q.listIds(db, { emails: groups, limit: groups.length })
  return { ...user, groups, ids: [user.id, ...known.map(({ id }) => id)] }
}

/** Throws 400 for a group where only a person will do. */
export function refuseGroup(text: string): void {
  if (!isGroup(text)) return
  throw badRequest('a group can only be a co-owner or a recipient; give a person', 'email')
}

/**
 * The group that a text means, which is added when new. Throws 400 where the proxy names no groups:
 * nobody would be a member.
 */
export async function ensureGroup(
  tx: Executor,
  text: string,
  { takesGroups, at }: { takesGroups: boolean; at: Date },
): Promise<User> {
  if (!takesGroups) throw badRequest(NOT_SET_UP, 'email')
  const email = readGroup(text)
  if (email === undefined) throw badRequest(`a group is group: and ${GROUP_NAME_FORM}`, 'email')
  const display_name = email.slice(PREFIX.length)
  const added = await q.addUser(tx, { email, display_name, role: 'user', created_at: at })
  const group = added ?? (await q.findUserByEmail(tx, { email }))
  if (group === undefined) throw new Error('a group that was just added is gone')
  return group
}
