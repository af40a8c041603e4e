import type { Database, Executor } from '../../db/client.ts'
import {
  addToken,
  MOST_TOKENS,
  removeToken,
  touchToken,
  type Bearer,
  type Scope,
  type Token,
} from '../../db/links/tokens.ts'
import { parseDuration } from '../../kernel/time.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import { hashToken, type RandomBytes } from '../../kernel/token-hash.ts'
import { INSTANT_FORM, readInstant } from './instant.ts'
import { refusal, type Refusal } from './refusal.ts'
import { TURNS_TEXT } from '../../kernel/text.ts'

/** A token that was made; its text is shown this one time. */
export interface MadeToken extends Token {
  readonly token: string
}

const PREFIX = 'gh_'
const BYTES = 32
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** 32 bytes in base 62. */
const LENGTH = 43
const NAME_LONGEST = 100
const NOTED_MS = 60_000

/** What is asked of a new token. */
export interface TokenRequest {
  readonly name: string
  readonly scope: Scope
  readonly expires_at: Date | null
}

/** When a token ends, as people say it: a duration becomes a time; what is none stays, to be read as one. */
export function endOf(text: string, now: Date): string {
  const seconds = parseDuration(text)
  const at = new Date(now.getTime() + (seconds ?? Number.NaN) * 1000)
  return Number.isNaN(at.getTime()) ? text : at.toISOString()
}

/** Reads what a body or a form asks of a token; the refusal says what is wrong with it. */
export function readTokenRequest(
  { name, scope = 'full', expires_at = null }: Readonly<Record<string, unknown>>,
  now: Date,
): TokenRequest | Refusal {
  if (typeof name !== 'string' || name.trim() === '' || name.length > NAME_LONGEST) {
    return refusal('BAD_REQUEST', `name must have 1 to ${NAME_LONGEST} characters`, 'name')
  }
  if (/[\p{Cc}\p{Cs}]/u.test(name)) {
    return refusal('BAD_REQUEST', 'name must have no control characters', 'name')
  }
  if (TURNS_TEXT.test(name)) {
    const message = 'name must have no characters that turn the direction of text'
    return refusal('BAD_REQUEST', message, 'name')
  }
  if (!isScope(scope)) {
    return refusal('BAD_REQUEST', 'scope must be full, read or create', 'scope')
  }
  const expires = expires_at === null ? null : readInstant(expires_at)
  if (expires === undefined) {
    const message = `expires_at must be ${INSTANT_FORM}, or null`
    return refusal('BAD_REQUEST', message, 'expires_at')
  }
  if (expires !== null && expires <= now) {
    return refusal('BAD_REQUEST', 'expires_at must be in the future', 'expires_at')
  }
  return { name: name.trim(), scope, expires_at: expires }
}

/** Makes a token for a user, unless that one has as many as one may; only its hash is stored. */
export async function createToken(
  db: Database,
  random: RandomBytes,
  user: string,
  request: TokenRequest,
  at: Date,
): Promise<MadeToken | Refusal> {
  const token = PREFIX + base62(random(BYTES))
  const row = { ...request, token_hash: hashToken(token), created_at: at }
  const added = await db.transaction((tx) => addToken(tx, user, row))
  return added === undefined ? TOO_MANY : { ...added, token }
}

const TOO_MANY = refusal(
  'BAD_REQUEST',
  `a user may have ${MOST_TOKENS.toLocaleString('en')} tokens; revoke one that is not needed first`,
)

/** Revokes a token of a user (null: of anybody): it stops to work at once. */
export async function revokeToken(
  db: Executor,
  id: string,
  user: string | null,
): Promise<Refusal | undefined> {
  if (await removeToken(db, id, user)) return undefined
  return refusal('NOT_FOUND', 'you have no token with this id')
}

/** Whether a text may be a token: no other one is looked up. */
export function hasTokenForm(text: string): boolean {
  return text.startsWith(PREFIX) && text.length === PREFIX.length + LENGTH
}

/** Notes a token's use, at most once a minute, without making the request wait for it. */
export function noteUse(db: Executor, log: Log, bearer: Bearer, now: Date): void {
  const { token_id, last_used_at } = bearer
  if (last_used_at !== null && now.getTime() - last_used_at.getTime() < NOTED_MS) return
  touchToken(db, token_id, now).catch((error: unknown) =>
    log.warn('use of a token not noted', { error: messageOf(error) }),
  )
}

export function isScope(value: unknown): value is Scope {
  return value === 'full' || value === 'read' || value === 'create'
}

function base62(bytes: Buffer): string {
  let rest = BigInt(`0x${bytes.toString('hex')}`)
  let text = ''
  while (text.length < LENGTH) {
    text = (DIGITS[Number(rest % 62n)] ?? '') + text
    rest /= 62n
  }
  return text
}
