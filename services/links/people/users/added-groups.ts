import type { Executor } from '../../../../db/client.ts'
import { userQueries as q, type User } from '../../../../db/links/people/users.ts'
import { badRequest } from '../../../../kernel/fault.ts'
import { GROUP_NAME_FORM } from '../../../../kernel/net/identity.ts'
import { isGroup, readGroup } from './groups.ts'

const NOT_SET_UP =
  'groups are not set up here; they take GATEHOUSE_GROUPS_HEADER, ' +
  'the header in which the trusted proxy names them'

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
  const display_name = email.slice(email.indexOf(':') + 1)
  const added = await q.addUser(tx, { email, display_name, role: 'user', created_at: at })
  const group = added ?? (await q.findUserByEmail(tx, { email }))
  if (group === undefined) throw new Error('a group that was just added is gone')
  return group
}
