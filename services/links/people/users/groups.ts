import type { Executor } from '../../../../db/client.ts'
import { userQueries as q, type User } from '../../../../db/links/people/users.ts'
import { readGroupName } from '../../../../kernel/net/identity.ts'

/** A user who calls, with the groups that the proxy names in this request. */
export interface Caller extends User {
  /** Such as `group:ops`; also groups that no link has. */
  groups: readonly string[]
  /** The ids by which links know the caller: the own one, and those of the groups. */
  ids: readonly string[]
}

/** Tells groups from people among the users: no e-mail address of a person has a colon. */
const PREFIX = 'group:'

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
