import { userQueries, type User } from '../db/links/users.ts'
import { notFound, Fault } from '../kernel/fault.ts'
import { oneOf, accepted } from '../kernel/readings.ts'
import { validate } from '../kernel/validate.ts'
import { changeRole, createUser, NewUser, readEmail } from '../services/links/users.ts'
import {
  command,
  JSON_FLAG,
  text,
  value,
  UsageError,
  type Arguments,
  type Call,
} from './command.ts'
import { printRows } from './output.ts'
import type { Database } from '../db/client.ts'
import { tokenQueries } from '../db/links/tokens.ts'
import { isUuid } from '../kernel/text.ts'
import { DURATION_FORM } from '../kernel/time.ts'
import { createToken, newTokenOf, TokenForm, type NewToken } from '../services/links/tokens.ts'

/** Rows that one statement reads. */
const PAGE = 1_000

const EMAIL = text('EMAIL', 'the e-mail address of the user')

const TOKEN_FLAGS = {
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
    name: 'user add',
    summary: 'add somebody who has links',
    args: { email: EMAIL },
    flags: {
      name: text('NAME', 'the name that people see'),
      admin: { summary: 'an admin may change every link' },
    },
    needs: 'database',
    async run({ args: { email }, flags: { name, admin } }, { db, now, output }) {
      const role = admin ? 'admin' : 'user'
      const user = await createUser(db, validate(NewUser, { email, name, role }), now())
      const next = `gatehouse token create ${user.email}`
      output.err(`${user.email} is a user now; create a token with: ${next}`)
    },
  }),
  command({
    name: 'user list',
    summary: 'list the users',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      const users: User[] = []
      for (;;) {
        const page = await userQueries.listUsers(db, {
          after: users.at(-1)?.email ?? '',
          limit: PAGE,
        })
        users.push(...page)
        if (page.length < PAGE) break
      }
      printRows(output, json, users, {
        EMAIL: ({ email }) => email,
        NAME: ({ display_name }) => display_name,
        ROLE: ({ role }) => role,
        CREATED: ({ created_at }) => created_at.toISOString(),
      })
    },
  }),
  command({
    name: 'user role',
    summary: 'make somebody an admin, or a user again',
    args: {
      email: EMAIL,
      role: value('user|admin', 'the new role', oneOf('user', 'admin')),
    },
    needs: 'database',
    async run({ args: { email, role } }, { db, output }) {
      const known = await knownUser(db, email)
      const changed = await changeRole(db, known.id, role)
      output.err(`${changed.email} has role ${changed.role} now`)
    },
  }),
  command({
    name: 'token create',
    summary: 'create a token for the links API; it is the last line of the output',
    args: { email: EMAIL },
    flags: TOKEN_FLAGS,
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
    },
  }),
]

/** What the flags ask for; `UsageError` names the flag that is wrong. */
function requestOf(flags: Call<Arguments, typeof TOKEN_FLAGS>['flags'], now: Date): NewToken {
  try {
    return newTokenOf(validate(TokenForm, { ...flags, name: flags.name ?? 'command line' }), now)
  } catch (error) {
    throw error instanceof Fault ? new UsageError(`--${error.message}`) : error
  }
}

/** The user with this e-mail address; throws 404 when there is none. */
export async function knownUser(db: Database, text: string): Promise<User> {
  const email = readEmail(text)
  const user = email === undefined ? undefined : await userQueries.findUserByEmail(db, { email })
  if (user !== undefined) return user
  throw notFound(`no user has the e-mail address "${text}"; add one with: gatehouse user add EMAIL`)
}
