import type { Executor } from '../../../db/client.ts'
import { userQueries as q, type Role, type User } from '../../../db/links/users.ts'
import { badRequest, notFound } from '../../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../../audit.ts'
import { linksFault } from '../faults.ts'
import type { NewUser } from './input.ts'
import { addUser, OPERATOR_EMAIL, readEmail } from './users.ts'

/** The user with an address as people type it. */
export async function findUser(db: Executor, text: string): Promise<User | undefined> {
  const email = readEmail(text)
  return email === undefined ? undefined : q.findUserByEmail(db, { email })
}

/** The user with an address; throws 404 if nobody has it. */
export async function userByEmail(db: Executor, text: string): Promise<User> {
  const user = await findUser(db, text)
  if (user === undefined) throw linksFault('NOT_FOUND', 'no user has this e-mail address', 'email')
  return user
}

/** Creates a user; throws 400 where the address is known. */
export async function createUser(tools: ChangeTools, wanted: NewUser, now: Date): Promise<User> {
  const user = await addUser(tools, wanted, now)
  if (user !== undefined) return user
  throw badRequest('there is a user with this e-mail address already', 'email')
}

/**
 * Gives a user a role, unless no admin would be left. The local operator does not count as one:
 * behind a proxy nobody can sign in as the operator.
 */
export function changeRole({ db, actor }: ChangeTools, user: string, role: Role): Promise<User> {
  return db.transaction(async (tx) => {
    const locked = role === 'user' ? await q.lockAdmins(tx, { user }) : []
    const admins = locked.filter((other) => other.role === 'admin')
    const others = admins.filter(({ id, email }) => id !== user && email !== OPERATOR_EMAIL)
    if (others.length === 0 && admins.some(({ id }) => id === user)) {
      throw linksFault('LAST_ADMIN', 'this is the last admin; make somebody else an admin first')
    }
    const changed = await q.setRole(tx, { user, role })
    if (changed === undefined) throw notFound('no user has this id')
    const subject = `${changed.email} to ${role}`
    await noteChange(tx, actor, { service: 'links', action: 'user role', subject })
    return changed
  })
}
