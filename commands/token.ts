import type { Database } from '../db/client.ts'
import { tokenQueries } from '../db/links/tokens.ts'
import { userQueries, type User } from '../db/links/users.ts'
import { isUuid } from '../kernel/text.ts'
import type { RandomBytes } from '../kernel/token-hash.ts'
import { Fault, notFound } from '../kernel/fault.ts'
import { validate } from '../kernel/validate.ts'
import { createToken, newTokenOf, TokenForm, type NewToken } from '../services/links/tokens.ts'
import { readEmail } from '../services/links/users.ts'
import { parseAction } from './action-arguments.ts'
import { DONE, fail, table, UsageError, type Output } from './command.ts'

export const TOKEN_USAGE =
  'gatehouse token create EMAIL [--name N] [--scope full|read|create] [--expires WHEN] |\n' +
  '                  list EMAIL [--json] | revoke ID'

export interface TokenTools {
  readonly db: Database
  readonly random: RandomBytes
  readonly now: () => Date
}

const ARGUMENTS = {
  command: 'token',
  flags: {
    name: { type: 'string' },
    scope: { type: 'string' },
    expires: { type: 'string' },
    json: { type: 'boolean' },
  },
  takes: { create: ['name', 'scope', 'expires'], list: ['json'], revoke: [] },
  words: { create: ['EMAIL'], list: ['EMAIL'], revoke: ['ID'] },
} as const

/** The arguments of `token`; `request` is what a token to be created is asked to be. */
interface Parsed {
  readonly action: string
  readonly word: string
  readonly json: boolean
  readonly request: NewToken
}

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseToken(args: readonly string[], now: Date): Parsed {
  const { action, name: word, flags } = parseAction(args, ARGUMENTS)
  const { name = 'command line', scope, expires } = flags
  const request = readNewToken({ name, scope, expires }, now)
  if (action === 'revoke' && !isUuid(word)) {
    throw new UsageError('ID must be the id of a token; see: gatehouse token list EMAIL')
  }
  return { action, word, json: flags.json === true, request }
}

/** `gatehouse token …`. A token that it makes is the last line of stdout, alone. */
export async function runToken(
  args: readonly string[],
  { db, random, now }: TokenTools,
  output: Output,
): Promise<number> {
  const at = now()
  const { action, word, json, request } = parseToken(args, at)
  if (action === 'revoke') {
    const removed = await tokenQueries.removeToken(db, { id: word, user: null })
    if (removed === undefined) return fail(output, `there is no token ${word}`)
    output.err(`token ${word} is revoked`)
    return DONE
  }
  const user = await knownUser(db, word)
  if (action === 'list') return list(db, user, json, output)
  const made = await createToken(db, random, user.id, request, at)
  const until = made.expires_at === null ? '' : `, until ${made.expires_at.toISOString()}`
  output.err(
    `token "${made.name}" of ${user.email}, scope ${made.scope}${until}, is shown this once:`,
  )
  output.out(made.token)
  return DONE
}

function readNewToken(flags: Readonly<Record<string, unknown>>, now: Date): NewToken {
  try {
    return newTokenOf(validate(TokenForm, flags), now)
  } catch (error) {
    throw error instanceof Fault ? new UsageError(`--${error.message}`) : error
  }
}

async function knownUser(db: Database, text: string): Promise<User> {
  const email = readEmail(text)
  const user = email === undefined ? undefined : await userQueries.findUserByEmail(db, { email })
  if (user !== undefined) return user
  throw notFound(`no user has the e-mail address "${text}"; add one with: gatehouse user add EMAIL`)
}

async function list(db: Database, user: User, json: boolean, output: Output): Promise<number> {
  const tokens = await tokenQueries.listTokens(db, { user: user.id })
  if (json) {
    output.out(JSON.stringify(tokens))
    return DONE
  }
  const rows = tokens.map(({ id, name, scope, created_at, expires_at, last_used_at }) => [
    id,
    name,
    scope,
    created_at.toISOString(),
    expires_at?.toISOString() ?? 'never',
    last_used_at?.toISOString() ?? 'never',
  ])
  const head = ['ID', 'NAME', 'SCOPE', 'CREATED', 'EXPIRES', 'LAST USED']
  for (const line of table(head, rows)) output.out(line)
  return DONE
}
