import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { Role, User } from './rows.ts'

/** The new user, or undefined when the e-mail address (in lower case) is known. */
export function addUser(
  db: Executor,
  { email, display_name, role, created_at }: Omit<User, 'id'>,
): Promise<User | undefined> {
  return optional(db, q.addUser, [email, display_name, role, created_at])
}

export function findUserByEmail(db: Executor, email: string): Promise<User | undefined> {
  return optional(db, q.findUserByEmail, [email])
}

/** Everybody, after an e-mail address. */
export function listUsers(db: Executor, after: string, limit: number): Promise<readonly User[]> {
  return many(db, q.listUsers, [after, limit])
}

/** All admins and one user more: none of them gets another role from another transaction until this one ends. */
export function lockAdmins(tx: Executor, id: string): Promise<readonly User[]> {
  return many(tx, q.lockAdmins, [id])
}

/** The user with the new role, or undefined when there is no such user. */
export function setRole(db: Executor, id: string, role: Role): Promise<User | undefined> {
  return optional(db, q.setRole, [id, role])
}
