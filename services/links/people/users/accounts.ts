import type { Executor } from '../../../../db/client.ts'
import { userQueries as q, type Role, type User } from '../../../../db/links/people/users.ts'
import { badRequest, notFound } from '../../../../kernel/fault.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { linksFault } from '../../faults.ts'
import type { NewUser } from './input.ts'
import { refuseGroup } from './added-groups.ts'
import { addUser, OPERATOR_EMAIL, readEmail } from './users.ts'

/** The user with an address as people type it. */
export async function findUser(db: Executor, text: string): Promise<User | undefined> {
  const email = readEmail(text)
  return email === undefined ? undefined : q.findUserByEmail(db, { email })
}

/** The user with an address; throws 404 if nobody has it, and 400 for a group. */
export async function userByEmail(db: Executor, text: string): Promise<User> {
  refuseGroup(text)
  const user = await findUser(db, text)
  if (user === undefined) throw linksFault('NOT_FOUND', NEVER_HERE, 'email')
  return user
}

const NEVER_HERE =
  'no user has this e-mail address: people become users when they open a page of links for the ' +
  'first time, signed in, or when an admin adds them'

/** Creates a user; throws 400 where the address is known. */
export async function createUser(tools: ChangeTools, wanted: NewUser, now: Date): Promise<User> {
  const user = await addUser(tools, wanted, now)
  if (user !== undefined) return user
  throw badRequest('there is a user with this e-mail address already', 'email')
}

/** Gives a user a role, unless no admin would be left. */
export function changeRole({ db, actor }: ChangeTools, user: string, role: Role): Promise<User> {
  return db.transaction(async (tx) => {
    if (role === 'user') refuseLastAdmin(user, await q.lockAdmins(tx, { user }))
    const changed = await q.setRole(tx, { user, role })
    if (changed === undefined) throw unknownUser()
    const subject = `${changed.email} to ${role}`
    await noteChange(tx, actor, { service: 'links', action: 'user role', subject })
    return changed
  })
}

/**
 * Disables a user, who then can't sign in and whose tokens don't work, or enables the user again.
 * Links, ownerships and tokens stay.
 */
export function changeDisabled(
  { db, actor }: ChangeTools,
  user: string,
  disabled: boolean,
  now: Date,
): Promise<User> {
  return db.transaction(async (tx) => {
    const locked = await q.lockAdmins(tx, { user })
    const known = locked.find(({ id }) => id === user)
    if (known === undefined) throw unknownUser()
    if (disabled === (known.disabled_at !== null)) return known
    if (disabled && known.email === OPERATOR_EMAIL) {
      throw badRequest('the local operator of this machine cannot be disabled')
    }
    if (disabled) refuseLastAdmin(user, locked)
    const changed = await q.setDisabled(tx, { user, at: disabled ? now : null })
    if (changed === undefined) throw unknownUser()
    const action = disabled ? 'user disable' : 'user enable'
    await noteChange(tx, actor, { service: 'links', action, subject: changed.email })
    return changed
  })
}

/**
 * Throws 409 where no other admin than the user could sign in. The local operator does not count:
 * behind a proxy nobody can sign in as the operator.
 */
function refuseLastAdmin(user: string, locked: readonly User[]): void {
  const admins = locked.filter(({ role, disabled_at }) => role === 'admin' && disabled_at === null)
  const others = admins.filter(({ id, email }) => id !== user && email !== OPERATOR_EMAIL)
  if (others.length > 0 || !admins.some(({ id }) => id === user)) return
  throw linksFault('LAST_ADMIN', 'this is the last admin; make somebody else an admin first')
}

function unknownUser() {
  return notFound('no user has this id')
}
