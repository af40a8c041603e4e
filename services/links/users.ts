import type { Database, Executor } from '../../db/client.ts'
import { userQueries as q, type Role, type User } from '../../db/links/users.ts'
import { badRequest, notFound } from '../../kernel/fault.ts'
import type { Identity } from '../../kernel/net/identity.ts'
import { linksFault } from './faults.ts'

/**
 * The user who works on this machine, without a proxy in front: an admin that every installation
 * has.
 */
export const OPERATOR_EMAIL = 'operator@localhost'

export const MAX_EMAIL_LENGTH = 254

/** An e-mail address as it is stored; undefined for other text. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  const isAddress = /^[^\s@\p{C}<>",;:]+@[^\s@\p{C}<>",;:]+$/u.test(email)
  return isAddress && email.length <= MAX_EMAIL_LENGTH ? email : undefined
}

/** Creates a user; without a name it is the first part of the address. */
export async function createUser(
  db: Executor,
  { email, name, role }: Pick<User, 'email' | 'role'> & { name: string },
  now: Date,
): Promise<User> {
  const display_name = name || firstPart(email)
  const user = await q.addUser(db, { email, display_name, role, created_at: now })
  if (user !== undefined) return user
  throw badRequest('there is a user with this e-mail address already', 'email')
}

/** The user with an address, who is created when new. The caller has checked the address. */
export async function ensureUser(
  db: Executor,
  email: string,
  role: Role,
  now: Date,
): Promise<User> {
  const known = await q.findUserByEmail(db, { email })
  if (known !== undefined) return known
  const display_name = firstPart(email)
  const added = await q.addUser(db, { email, display_name, role, created_at: now })
  // Somebody else may have added the user meanwhile.
  return added ?? ensureUser(db, email, role, now)
}

/** The user with an address as people type it. */
export async function findUser(db: Executor, text: string): Promise<User | undefined> {
  const email = readEmail(text)
  return email === undefined ? undefined : q.findUserByEmail(db, { email })
}

/** The user with an address; throws 404 when there is none. */
export async function userByEmail(db: Executor, text: string): Promise<User> {
  const user = await findUser(db, text)
  if (user === undefined) throw linksFault('NOT_FOUND', 'no user has this e-mail address', 'email')
  return user
}

/**
 * Gives a user a role, unless no admin would be left. The local operator does not count as one:
 * behind a proxy nobody can sign in as the operator.
 */
export function changeRole(db: Database, user: string, role: Role): Promise<User> {
  return db.transaction(async (tx) => {
    const locked = role === 'user' ? await q.lockAdmins(tx, { user }) : []
    const admins = locked.filter((other) => other.role === 'admin')
    const others = admins.filter(({ id, email }) => id !== user && email !== OPERATOR_EMAIL)
    if (others.length === 0 && admins.some(({ id }) => id === user)) {
      throw linksFault('LAST_ADMIN', 'this is the last admin; make somebody else an admin first')
    }
    const changed = await q.setRole(tx, { user, role })
    if (changed === undefined) throw notFound('no user has this id')
    return changed
  })
}

/** On open paths anybody without a proxy counts as a stranger, also the local operator. */
export function levelOf({ kind }: Identity): 'trusted' | 'strangers' {
  return kind === 'user' ? 'trusted' : 'strangers'
}

/**
 * The user at a browser; undefined: anonymous. Users named by the proxy are added automatically. A
 * proxy cannot name the operator: people who sign in there might be able to choose their address.
 */
export async function visitorOf(
  db: Database,
  identity: Identity,
  now: Date,
  lookUp: Executor = db,
): Promise<User | undefined> {
  if (identity.kind === 'anonymous') return undefined
  if (identity.kind === 'operator') return q.findUserByEmail(lookUp, { email: OPERATOR_EMAIL })
  const email = readEmail(identity.email)
  if (email === undefined || email === OPERATOR_EMAIL) return undefined
  return ensureUser(db, email, 'user', now)
}

function firstPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}
