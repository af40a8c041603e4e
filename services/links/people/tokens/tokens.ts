import type { Database, Executor } from '../../../../db/client.ts'
import { tokenQueries as q, type Bearer } from '../../../../db/links/people/tokens.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import { hashToken } from '../../../../kernel/tokens.ts'

/** How a token begins. */
export const PREFIX = 'gh_'
/** The length of 32 bytes in base 62, which follow. */
export const LENGTH = 43
/** The last use of a token is recorded at most this often. */
const USE_INTERVAL_MS = 60_000
const MAX_REMEMBERED = 10_000

/**
 * Finds who a token stands for; undefined for one that is unknown, revoked or expired. Asks the
 * database each time, so that a revoked token stops working at once. Tokens that were
 * valid before are looked up among trusted callers: made-up tokens cannot delay them.
 */
export function bearerFinder(db: Database) {
  /** Hashes of tokens that were valid when they were last presented, oldest first. */
  const valid = new Set<string>()

  return async (token: string, now: Date): Promise<Bearer | undefined> => {
    if (!token.startsWith(PREFIX) || token.length !== PREFIX.length + LENGTH) return undefined
    const token_hash = hashToken(token)
    const key = token_hash.toString('base64')
    const level = valid.has(key) ? 'trusted' : 'strangers'
    const bearer = await q.findBearer(db.at(level), { token_hash, now })
    if (bearer === undefined) valid.delete(key)
    else valid.add(key)
    const [oldest = ''] = valid
    if (valid.size > MAX_REMEMBERED) valid.delete(oldest)
    return bearer
  }
}

/** Records the use of a token, at most once a minute. The request does not wait for it. */
export function noteUse(db: Executor, log: Log, bearer: Bearer, now: Date): void {
  const { token_id: id, last_used_at } = bearer
  if (last_used_at !== null && now.getTime() - last_used_at.getTime() < USE_INTERVAL_MS) return
  q.touchToken(db, { id, now }).catch((error: unknown) =>
    log.warn('use of a token not noted', { error: messageOf(error) }),
  )
}
