import type { Database, Executor } from '../../db/client.ts'
import {
  addUser,
  findUserByEmail,
  lockAdmins,
  setRole,
  type Role,
  type User,
} from '../../db/links/users.ts'
import { refusal, type Refusal } from './refusal.ts'

/** Who works on this machine, without a proxy in front: an admin that every installation has. */
export const OPERATOR_EMAIL = 'operator@localhost'

const EMAIL_LONGEST = 254
const NAME_LONGEST = 100

/** An e-mail address as it is stored, or undefined when it is none. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  const isAddress = /^[^\s@\p{C}<>",;:]+@[^\s@\p{C}<>",;:]+$/u.test(email)
  return isAddress && email.length <= EMAIL_LONGEST ? email : undefined
}

/** Makes a user; the name is the address's first part when none is given. */
export async function createUser(
  db: Executor,
  { email: text, name, role }: { email: string; name: string | undefined; role: Role },
  at: Date,
): Promise<User | Refusal> {
  const email = readEmail(text)
  if (email === undefined) {
    return refusal('BAD_REQUEST', 'the e-mail address must look like name@example.com', 'email')
  }
  const display_name = name ?? email.slice(0, email.indexOf('@'))
  if (
    display_name.length < 1 ||
    display_name.length > NAME_LONGEST ||
    /\p{C}/u.test(display_name)
  ) {
    return refusal('BAD_REQUEST', `the name must have 1 to ${NAME_LONGEST} characters`, 'name')
  }
  const user = await addUser(db, { email, display_name, role, created_at: at })
  return user ?? refusal('BAD_REQUEST', 'there is a user with this e-mail address already', 'email')
}

/** The user with an address; one that is new becomes a user. The address is checked by the caller. */
export async function ensureUser(db: Executor, email: string, role: Role, at: Date): Promise<User> {
  const known = await findUserByEmail(db, email)
  if (known !== undefined) return known
  const display_name = email.slice(0, email.indexOf('@'))
  const added = await addUser(db, { email, display_name, role, created_at: at })
  const user = added ?? (await findUserByEmail(db, email))
  if (user === undefined) throw new Error('a user that was just stored is gone')
  return user
}

/** Somebody who is to be given a link. */
export async function userByEmail(db: Executor, text: string): Promise<User | Refusal> {
  const email = readEmail(text)
  const user = email === undefined ? undefined : await findUserByEmail(db, email)
  return user ?? refusal('NOT_FOUND', 'no user has this e-mail address', 'email')
}

/**
 * Gives a user a role, unless no admin would be left. The local operator does not count as one: behind a
 * proxy nobody can sign in as the operator.
 */
export function changeRole(db: Database, id: string, role: Role): Promise<User | Refusal> {
  return db.transaction(async (tx) => {
    const locked = role === 'user' ? await lockAdmins(tx, id) : []
    const admins = locked.filter((user) => user.role === 'admin')
    const others = admins.filter((admin) => admin.id !== id && admin.email !== OPERATOR_EMAIL)
    if (others.length === 0 && admins.some((admin) => admin.id === id)) return LAST_ADMIN
    return (await setRole(tx, id, role)) ?? refusal('NOT_FOUND', 'no user has this id')
  })
}

const LAST_ADMIN = refusal(
  'LAST_ADMIN',
  'this is the last admin; make somebody else an admin first',
)

export function isRole(value: unknown): value is Role {
  return value === 'user' || value === 'admin'
}
