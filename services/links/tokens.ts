import Type from 'typebox'
import type { Database, Executor } from '../../db/client.ts'
import { Scope, tokenQueries as q, Token, type Bearer } from '../../db/links/tokens.ts'
import { nullable, Timestamp } from '../../db/sql-file.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { TURNS_TEXT } from '../../kernel/text.ts'
import { hashToken, type RandomBytes } from '../../kernel/tokens.ts'
import { DURATION_FORM, INSTANT_FORM, parseDuration, readInstant } from '../../kernel/time.ts'
import { field, parsed, withDefault } from '../../kernel/validate.ts'
import { linksFault } from './faults.ts'

const PREFIX = 'gh_'
const BYTES = 32
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** The length of 32 bytes in base 62. */
const LENGTH = 43
/** All tokens of a user are listed on one page, so there must not be more of them. */
const MAX_TOKENS = 1_000
/** The last use of a token is recorded at most this often. */
const USE_INTERVAL_MS = 60_000
const MAX_REMEMBERED = 10_000

const name = field(
  Type.String({ minLength: 1, maxLength: 100 }),
  'must have 1 to 100 characters',
  [(text) => text.trim() !== '', 'must have 1 to 100 characters'],
  [(text) => !/[\p{Cc}\p{Cs}]/u.test(text), 'must have no control characters'],
  [(text) => !TURNS_TEXT.test(text), 'must have no characters that change the direction of text'],
)
const scope = field(withDefault(Scope, 'full'), 'must be full, read or create')

/** What POST /tokens takes. */
export const NewToken = Type.Object(
  {
    name,
    scope,
    expires_at: parsed(
      withDefault(nullable(Timestamp), null),
      `must be ${INSTANT_FORM}, or null`,
      (given) => (given === null ? null : readInstant(given)),
    ),
  },
  { examples: [{ name: 'laptop', scope: 'read', expires_at: null }] },
)
export type NewToken = Type.Static<typeof NewToken>

/** What people type: `expires` is a time, a duration from now such as `30d`, or empty for never. */
export const TokenForm = Type.Object({ name, scope, expires: withDefault(Type.String(), '') })
export type TokenForm = Type.Static<typeof TokenForm>

/** A token that was just created; its text is shown only this once. */
export const CreatedToken = Type.Object({
  ...Token.properties,
  token: Type.String({ description: 'Shown this one time' }),
})
export type CreatedToken = Type.Static<typeof CreatedToken>

/** The token that a form describes. */
export function newTokenOf({ expires, ...rest }: TokenForm, now: Date): NewToken {
  if (expires === '') return { ...rest, expires_at: null }
  const expires_at = timeOf(expires, now)
  if (expires_at === undefined) {
    const message = `expires must be ${INSTANT_FORM}, or ${DURATION_FORM}`
    throw linksFault('BAD_REQUEST', message, 'expires')
  }
  refusePast('expires', expires_at, now)
  return { ...rest, expires_at }
}

/** Creates a token for a user. Only its hash is stored. */
export async function createToken(
  db: Database,
  random: RandomBytes,
  user: string,
  { name, scope, expires_at }: NewToken,
  now: Date,
): Promise<CreatedToken> {
  refusePast('expires_at', expires_at, now)
  const token = PREFIX + base62(random(BYTES))
  const row = {
    user,
    name: name.trim(),
    scope,
    token_hash: hashToken(token),
    created_at: now,
    expires_at,
    max: MAX_TOKENS,
  }
  const added = await db.transaction(async (tx) => {
    await q.lockTokens(tx, { user })
    const first = await q.addToken(tx, row)
    if (first !== undefined) return first
    // Expired tokens stay listed until their room is needed.
    await q.removeExpiredTokens(tx, { user, now })
    return q.addToken(tx, row)
  })
  if (added !== undefined) return { ...added, token }
  const max = MAX_TOKENS.toLocaleString('en')
  const message = `a user may have ${max} tokens; revoke one that is not needed first`
  throw linksFault('BAD_REQUEST', message)
}

/** Revokes a token of a user: it stops working at once. */
export async function revokeToken(db: Executor, id: string, user: string): Promise<void> {
  const removed = await q.removeToken(db, { id, user })
  if (removed === undefined) throw linksFault('NOT_FOUND', 'you have no token with this id')
}

/** Finds who presented tokens stand for. */
export interface Bearers {
  /** Undefined for a token that is unknown, revoked or expired. */
  find(token: string, now: Date): Promise<Bearer | undefined>
}

/**
 * Asks the database each time, so that a revoked token stops working at once. Tokens that were
 * valid before are looked up among trusted callers: made-up tokens cannot delay them.
 */
export function createBearers(db: Database): Bearers {
  /** Hashes of tokens that were valid when they were last presented, oldest first. */
  const valid = new Set<string>()

  function remember(key: string): void {
    valid.add(key)
    const [oldest = ''] = valid
    if (valid.size > MAX_REMEMBERED) valid.delete(oldest)
  }

  return {
    async find(token, now) {
      if (!token.startsWith(PREFIX) || token.length !== PREFIX.length + LENGTH) return undefined
      const token_hash = hashToken(token)
      const key = token_hash.toString('base64')
      const level = valid.has(key) ? 'trusted' : 'strangers'
      const bearer = await q.findBearer(db.at(level), { token_hash, now })
      if (bearer === undefined) valid.delete(key)
      else remember(key)
      return bearer
    },
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

function refusePast(field: string, at: Date | null, now: Date): void {
  if (at !== null && at <= now) {
    throw linksFault('BAD_REQUEST', `${field} must be in the future`, field)
  }
}

/** A time as people type it: an instant, or a duration from now. */
function timeOf(text: string, now: Date): Date | undefined {
  const seconds = parseDuration(text)
  if (seconds === undefined) return readInstant(text)
  const at = new Date(now.getTime() + seconds * 1000)
  // Also undefined for what is no date any more: comparing NaN gives false.
  return at.getUTCFullYear() <= 9999 ? at : undefined
}

function base62(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  while (text.length < LENGTH) {
    text = (BASE62[Number(rest % 62n)] ?? '') + text
    rest /= 62n
  }
  return text
}
