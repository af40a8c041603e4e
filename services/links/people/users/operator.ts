import type { Database } from '../../../../db/client.ts'
import { userQueries as q, type User } from '../../../../db/links/people/users.ts'
import type { ChangeTools } from '../../../audit.ts'
import { withoutGroups, type Caller } from './groups.ts'
import { ensureUser, OPERATOR_EMAIL } from './users.ts'

/**
 * Who changes links by commands: the local operator, as an admin whatever role the operator has on
 * the pages. Who runs commands here could write into the database.
 */
export async function commandUser(tools: ChangeTools, now: Date): Promise<Caller> {
  const operator = await ensureUser(tools, OPERATOR_EMAIL, 'admin', now)
  return withoutGroups({ ...operator, role: 'admin' })
}

/** Enough for a small installation, where one of them is who works on its machine. */
const MAX_OWNERS = 5

/** The addresses of people with links, for the operator of this machine; nobody for others. */
export async function ownersForOperator(
  db: Database,
  { email }: Pick<User, 'email'>,
): Promise<readonly string[]> {
  if (email !== OPERATOR_EMAIL) return []
  const owners = await q.listPrimaryOwners(db, { limit: MAX_OWNERS })
  return owners.map((owner) => owner.email)
}
