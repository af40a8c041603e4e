import type { Database } from '../db/client.ts'
import { tokenQueries } from '../db/links/tokens.ts'
import { userQueries, type User } from '../db/links/users.ts'
import { Fault, notFound } from '../kernel/fault.ts'
import { accepted, oneOf } from '../kernel/readings.ts'
import { isUuid } from '../kernel/text.ts'
import { DURATION_FORM } from '../kernel/time.ts'
import { validate } from '../kernel/validate.ts'
import { createToken, newTokenOf, TokenForm, type NewToken } from '../services/links/tokens.ts'
import { readEmail } from '../services/links/users.ts'
import { command, JSON_FLAG, text, UsageError, value } from './command.ts'
import { DONE, printRows } from './output.ts'

const EMAIL = text('EMAIL', 'the e-mail address of the user')

const FLAGS = {
  name: text('NAME', 'what it is for'),
  scope: value(
    'full|read|create',
    'what it may do, everything unless given',
    oneOf('full', 'read', 'create'),
  ),
  expires: text('WHEN', `when it ends, never unless given: a time, or ${DURATION_FORM}`),
}

export const commands = [
  command({
    name: 'token create',
    summary: 'create a token for the links API; it is the last line of the output',
    args: { email: EMAIL },
    flags: FLAGS,
    needs: 'database',
    check: ({ flags }, now) => void requestOf(flags, now),
    async run({ args: { email }, flags }, { db, random, now, output }) {
      const at = now()
      const user = await knownUser(db, email)
      const made = await createToken(db, random, user.id, requestOf(flags, at), at)
      const until = made.expires_at === null ? '' : `, until ${made.expires_at.toISOString()}`
      const what = `token "${made.name}" of ${user.email}, scope ${made.scope}${until}`
      output.err(`${what}, is shown this once:`)
      output.out(made.token)
      return DONE
    },
  }),
  command({
    name: 'token list',
    summary: 'list the tokens of a user',
    args: { email: EMAIL },
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ args: { email }, flags: { json } }, { db, output }) {
      const { id: user } = await knownUser(db, email)
      printRows(output, json, await tokenQueries.listTokens(db, { user }), {
        ID: ({ id }) => id,
        NAME: ({ name }) => name,
        SCOPE: ({ scope }) => scope,
        CREATED: ({ created_at }) => created_at.toISOString(),
        EXPIRES: ({ expires_at }) => expires_at?.toISOString() ?? 'never',
        'LAST USED': ({ last_used_at }) => last_used_at?.toISOString() ?? 'never',
      })
      return DONE
    },
  }),
  command({
    name: 'token revoke',
    summary: 'revoke a token: it stops working at once',
    args: {
      id: value(
        'ID',
        'the id of the token',
        accepted('the id of a token; see: gatehouse token list EMAIL', (text) =>
          isUuid(text) ? text : undefined,
        ),
      ),
    },
    needs: 'database',
    async run({ args: { id } }, { db, output }) {
      const removed = await tokenQueries.removeToken(db, { id, user: null })
      if (removed === undefined) throw notFound(`there is no token ${id}`)
      output.err(`token ${id} is revoked`)
      return DONE
    },
  }),
]

/** What the flags ask for; `UsageError` names the flag that is wrong. */
function requestOf(
  flags: {
    readonly name: string | undefined
    readonly scope: string | undefined
    readonly expires: string | undefined
  },
  now: Date,
): NewToken {
  try {
    return newTokenOf(validate(TokenForm, { ...flags, name: flags.name ?? 'command line' }), now)
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
