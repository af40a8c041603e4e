import Type from 'typebox'
import type { Database, Executor } from '../../db/client.ts'
import { Role, userQueries as q, type User } from '../../db/links/users.ts'
import type { Identity } from '../../kernel/net/identity.ts'
import { field, fits, parsed, withDefault } from '../../kernel/validate.ts'
import { linksFault } from './faults.ts'

/**
 * The user who works on this machine, without a proxy in front: an admin that every installation
 * has.
 */
export const OPERATOR_EMAIL = 'operator@localhost'

const MAX_EMAIL_LENGTH = 254
const MAX_NAME_LENGTH = 100
const WRONG_ROLE = 'must be user or admin'

/** What an admin says of a new user. Without a name, it is the first part of the address. */
export const NewUser = Type.Object({
  email: parsed(
    Type.String({ maxLength: MAX_EMAIL_LENGTH }),
    'must look like name@example.com',
    (given) => (typeof given === 'string' ? readEmail(given) : undefined),
  ),
  name: parsed(
    withDefault(Type.String({ maxLength: MAX_NAME_LENGTH }), ''),
    `must have 1 to ${MAX_NAME_LENGTH} characters, and no control characters`,
    readName,
  ),
  role: field(withDefault(Role, 'user'), { code: 'INVALID_ROLE', text: WRONG_ROLE }),
})
export type NewUser = Type.Static<typeof NewUser>

/** The role that a user is to have. */
export const RoleChange = Type.Object({
  role: parsed(Role, 'is required and must be a string', (given) => {
    if (fits(Role, given)) return given
    if (typeof given === 'string') throw linksFault('INVALID_ROLE', `role ${WRONG_ROLE}`, 'role')
    return undefined
  }),
})

/** An e-mail address as it is stored; undefined for other text. */
export function readEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  const isAddress = /^[^\s@\p{C}<>",;:]+@[^\s@\p{C}<>",;:]+$/u.test(email)
  return isAddress && email.length <= MAX_EMAIL_LENGTH ? email : undefined
}

/** Creates a user. */
export async function createUser(
  db: Executor,
  { email, name, role }: NewUser,
  now: Date,
): Promise<User> {
  const display_name = name === '' ? firstPart(email) : name
  const user = await q.addUser(db, { email, display_name, role, created_at: now })
  if (user !== undefined) return user
  throw linksFault('BAD_REQUEST', 'there is a user with this e-mail address already', 'email')
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
  const user = added ?? (await q.findUserByEmail(db, { email }))
  if (user === undefined) throw new Error('a user that was just stored is gone')
  return user
}

/** The user with an address; throws 404 when there is none. */
export async function userByEmail(db: Executor, text: string): Promise<User> {
  const email = readEmail(text)
  const user = email === undefined ? undefined : await q.findUserByEmail(db, { email })
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
      const message = 'this is the last admin; make somebody else an admin first'
      throw linksFault('LAST_ADMIN', message)
    }
    const changed = await q.setRole(tx, { user, role })
    if (changed === undefined) throw linksFault('NOT_FOUND', 'no user has this id')
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

function readName(given: unknown): string | undefined {
  if (typeof given !== 'string') return undefined
  const name = given.trim()
  return name.length <= MAX_NAME_LENGTH && !/\p{C}/u.test(name) ? name : undefined
}

function firstPart(email: string): string {
  return email.slice(0, email.indexOf('@'))
}
