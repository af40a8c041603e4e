import type { Database, Executor } from '../../db/client.ts'
import { findUserByEmail, type User } from '../../db/links/users.ts'
import type { Identity } from '../../kernel/net/identity.ts'
import type { VisitLevel } from './target-cache.ts'
import { ensureUser, OPERATOR_EMAIL, readEmail } from './users.ts'

/** On an open path anybody may be who no proxy names, the local operator too. */
export function levelOf({ kind }: Identity): VisitLevel {
  return kind === 'user' ? 'trusted' : 'strangers'
}

/**
 * The user at a browser; whom a proxy names for the first time becomes one. Undefined: anonymous. The
 * operator is nobody that a proxy can name: who signs in there might be able to choose the address.
 */
export async function visitorOf(
  db: Database,
  identity: Identity,
  now: Date,
  lookUp: Executor = db,
): Promise<User | undefined> {
  if (identity.kind === 'anonymous') return undefined
  if (identity.kind === 'operator') return findUserByEmail(lookUp, OPERATOR_EMAIL)
  const email = readEmail(identity.email)
  if (email === undefined || email === OPERATOR_EMAIL) return undefined
  return ensureUser(db, email, 'user', now)
}
