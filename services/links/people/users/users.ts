import type { Database, Executor } from '../../../../db/client.ts'
import { userQueries as q, type Role, type User } from '../../../../db/links/people/users.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { noteChange, type ChangeTools } from '../../../audit.ts'
import { withGroups, withoutGroups, type Caller } from './groups.ts'

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

/** Adds a user, with a line in the audit; undefined where the address is known. */
export function addUser(
  { db, actor }: ChangeTools,
  { email, name, role }: Pick<User, 'email' | 'role'> & { name: string },
  now: Date,
): Promise<User | undefined> {
  return db.transaction(async (tx) => {
    const display_name = name || email.slice(0, email.indexOf('@'))
    const added = await q.addUser(tx, { email, display_name, role, created_at: now })
    const note = { service: 'links', action: 'user add', subject: email } as const
    if (added !== undefined) await noteChange(tx, actor, note)
    return added
  })
}

/** The user with an address, who is added when new. The caller has checked the address. */
export async function ensureUser(
  tools: ChangeTools,
  email: string,
  role: Role,
  now: Date,
): Promise<User> {
  const known = await q.findUserByEmail(tools.db, { email })
  if (known !== undefined) return known
  const added = await addUser(tools, { email, name: '', role }, now)
  // Somebody else may have added the user meanwhile.
  return added ?? ensureUser(tools, email, role, now)
}

/** On open paths anybody without a proxy counts as a stranger, also the local operator. */
export function levelOf({ kind }: Actor): 'trusted' | 'strangers' {
  return kind === 'user' ? 'trusted' : 'strangers'
}

/** The user at a browser, with groups; undefined: anonymous, or disabled. */
export async function visitorOf(
  db: Database,
  actor: Actor,
  now: Date,
  lookUp: Executor = db,
): Promise<Caller | undefined> {
  const user = await accountOf(db, actor, now, lookUp)
  return user?.disabled_at === null ? user : undefined
}

/**
 * The e-mail address of who is at a browser; undefined: anonymous. A proxy cannot name the
 * operator: people who sign in there might be able to choose their address.
 */
export function emailOf(actor: Actor): string | undefined {
  if (actor.kind === 'operator') return OPERATOR_EMAIL
  const email = actor.kind === 'user' ? readEmail(actor.email) : undefined
  return email === OPERATOR_EMAIL ? undefined : email
}

/**
 * The account of who is at a browser; undefined: anonymous. Users named by the proxy are added
 * automatically.
 */
export async function accountOf(
  db: Database,
  actor: Actor,
  now: Date,
  lookUp: Executor = db,
): Promise<Caller | undefined> {
  const email = emailOf(actor)
  if (email === undefined) return undefined
  if (actor.kind !== 'user') {
    const operator = await q.findUserByEmail(lookUp, { email })
    return operator && withoutGroups(operator)
  }
  return withGroups(lookUp, await ensureUser({ db, actor }, email, 'user', now), actor.groups)
}
