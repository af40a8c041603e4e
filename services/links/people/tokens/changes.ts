import * as Type from '../../../../kernel/schema.ts'
import { Scope, tokenQueries as q, Token } from '../../../../db/links/people/tokens.ts'
import type { User } from '../../../../db/links/people/users.ts'
import { nullable, Timestamp } from '../../../../db/sql-file.ts'
import { badRequest, Fault, notFound } from '../../../../kernel/fault.ts'
import { TURNS_TEXT } from '../../../../kernel/text.ts'
import { hashToken, type RandomBytes } from '../../../../kernel/tokens.ts'
import { DURATION_FORM, INSTANT_FORM, readInstant, readTime } from '../../../../kernel/time.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import { makeChange, noteChange, type ChangeNote, type ChangeTools } from '../../../audit.ts'
import { LENGTH, PREFIX } from './tokens.ts'

const BYTES = 32
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
/** All tokens of a user are listed on one page, so there must not be more of them. */
const MAX_TOKENS = 1_000

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

/**
 * What people type: `expires` is a time, a duration from now such as `30d`, or empty for never.
 */
export const TokenForm = Type.Object({
  name,
  scope,
  expires: withDefault(Type.String(), ''),
  /** The newest token that the page showed, empty for none; another one since is a conflict. */
  newest: Type.Optional(Type.String()),
})
export type TokenForm = Type.Static<typeof TokenForm>

/** A token that was just created; its text is shown only this once. */
export const CreatedToken = Type.Object({
  ...Token.properties,
  token: Type.String({ description: 'Shown this one time' }),
})
export type CreatedToken = Type.Static<typeof CreatedToken>

/** The token that a form describes. */
export function newTokenOf({ name, scope, expires }: TokenForm, now: Date): NewToken {
  if (expires === '') return { name, scope, expires_at: null }
  const expires_at = readTime(expires, now)
  if (expires_at === undefined) {
    const message = `expires must be ${INSTANT_FORM}, or ${DURATION_FORM}`
    throw badRequest(message, 'expires')
  }
  refusePast('expires', expires_at, now)
  return { name, scope, expires_at }
}

/**
 * Creates a token for a user. Only its hash is stored. `seen` is the newest token that the user saw
 * before, empty for none: a form that is sent twice must not create a second one.
 */
export async function createToken(
  tools: ChangeTools & { random: RandomBytes },
  { id: user, email }: Pick<User, 'id' | 'email'>,
  input: NewToken,
  now: Date,
  seen?: string,
): Promise<CreatedToken> {
  refusePast('expires_at', input.expires_at, now)
  const token = PREFIX + base62(tools.random(BYTES))
  const row = {
    ...input,
    user,
    name: input.name.trim(),
    token_hash: hashToken(token),
    created_at: now,
    max: MAX_TOKENS,
  }
  const added = await makeChange(tools, noteOf('create', { ...row, email }), async (tx) => {
    await q.lockTokens(tx, { user })
    if (seen !== undefined && seen !== newestOf(await q.listTokens(tx, { user }))) {
      throw new Fault(409, 'CONFLICT', CREATED_SINCE)
    }
    const first = await q.addToken(tx, row)
    if (first !== undefined) return first
    // Expired tokens stay listed until their room is needed.
    await q.removeExpiredTokens(tx, { user, now })
    const second = await q.addToken(tx, row)
    if (second !== undefined) return second
    const max = MAX_TOKENS.toLocaleString('en')
    throw badRequest(`a user may have ${max} tokens; revoke one that is not needed first`)
  })
  return { ...added, token }
}

/** Revokes a token of a user, or with null of anybody: it stops working at once. */
export async function revokeToken(
  { db, actor }: ChangeTools,
  id: string,
  user: string | null,
): Promise<void> {
  await db.transaction(async (tx) => {
    const removed = await q.removeToken(tx, { id, user })
    if (removed !== undefined) return noteChange(tx, actor, noteOf('revoke', removed))
    throw notFound(user === null ? `there is no token ${id}` : 'you have no token with this id')
  })
}

/** The line of a change in the audit. */
function noteOf(verb: string, { name, email }: { name: string; email: string }): ChangeNote {
  return { service: 'links', action: `token ${verb}`, subject: `${name} of ${email}` }
}

const CREATED_SINCE =
  'a token was created since this page was loaded; look at the list before you create another one'

/** The id of the newest token, as the form sends it back; empty for none. */
export function newestOf([newest]: readonly Pick<Token, 'id'>[]): string {
  return newest?.id ?? ''
}

function refusePast(field: string, at: Date | null, now: Date): void {
  if (at !== null && at <= now) {
    throw badRequest(`${field} must be in the future`, field)
  }
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
