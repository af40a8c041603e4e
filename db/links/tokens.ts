import type { Executor } from '../client.ts'
import { many, optional } from '../rows.ts'
import { linksQueries as q } from './queries.ts'
import type { Bearer, NewToken, Token } from './rows.ts'

/** A user is given no more tokens than this, because all of them are listed. */
export const MOST_TOKENS = 1_000

/** Undefined when the user has as many as one may; those that have expired go before that is said. */
export async function addToken(
  tx: Executor,
  user: string,
  token: NewToken,
): Promise<Token | undefined> {
  const { name, scope, token_hash, created_at, expires_at } = token
  await tx.run(q.takeTokenTurn, [user])
  const row = [user, name, scope, token_hash, created_at, expires_at]
  const add = (): Promise<Token | undefined> => optional(tx, q.addToken, [...row, MOST_TOKENS])
  const added = await add()
  if (added !== undefined) return added
  await tx.run(q.removeExpiredTokens, [user, created_at])
  return add()
}

/** All of a user's tokens, newest first. */
export function listTokens(db: Executor, user: string): Promise<readonly Token[]> {
  return many(db, q.listTokens, [user])
}

/** False when the user (null: anybody) has no such token. */
export async function removeToken(db: Executor, id: string, user: string | null): Promise<boolean> {
  return (await optional(db, q.removeToken, [id, user])) !== undefined
}

/** Whose token has this hash, unless it has expired by now. */
export function findToken(db: Executor, hash: Buffer, now: Date): Promise<Bearer | undefined> {
  return optional(db, q.findToken, [hash, now])
}

/** Notes that a token was used; one use a minute is enough. */
export async function touchToken(db: Executor, id: string, at: Date): Promise<void> {
  await db.run(q.touchToken, [id, at])
}
