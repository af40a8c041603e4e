import type { Database } from '../../db/client.ts'
import { findToken, type Bearer } from '../../db/links/tokens.ts'
import { hashToken } from '../../kernel/token-hash.ts'
import { hasTokenForm } from './tokens.ts'

/** Finds who presented tokens stand for. */
export interface Bearers {
  /** Undefined for a token that is unknown, revoked or expired. */
  find(token: string, now: Date): Promise<Bearer | undefined>
}

const MOST_REMEMBERED = 10_000

/**
 * The database is asked each time, so that a revoked token stops working at once. A token that was valid
 * before is looked up among trusted callers: made-up tokens can't delay it.
 */
export function createBearers(db: Database): Bearers {
  /** Hashes of tokens that were valid when they were last presented, the longest known first. */
  const valid = new Set<string>()

  function remember(key: string): void {
    valid.add(key)
    const [oldest = ''] = valid
    if (valid.size > MOST_REMEMBERED) valid.delete(oldest)
  }

  return {
    async find(token, now) {
      if (!hasTokenForm(token)) return undefined
      const hash = hashToken(token)
      const key = hash.toString('base64')
      const bearer = await findToken(db.at(valid.has(key) ? 'trusted' : 'strangers'), hash, now)
      if (bearer === undefined) valid.delete(key)
      else remember(key)
      return bearer
    },
  }
}
