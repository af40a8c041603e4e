import type { Database } from '../../db/client.ts'
import type { User } from '../../db/links/rows.ts'
import { findUserByEmail } from '../../db/links/users.ts'
import type { Identity } from '../../kernel/identity.ts'
import { ensureUser, OPERATOR_EMAIL, readEmail } from './users.ts'

/**
 * The user at a browser; whom a proxy names for the first time becomes one. Undefined: anonymous. The
 * operator is nobody that a proxy can name: who signs in there might be able to choose the address.
 */
export async function visitorOf(
  db: Database,
  identity: Identity,
  now: Date,
): Promise<User | undefined> {
  if (identity.kind === 'anonymous') return undefined
  if (identity.kind === 'operator') return findUserByEmail(db, OPERATOR_EMAIL)
  const email = readEmail(identity.email)
  if (email === undefined || email === OPERATOR_EMAIL) return undefined
  return ensureUser(db, email, 'user', now)
}
