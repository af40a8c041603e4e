import { userQueries } from '../../db/links/people/users.ts'
import { notFound } from '../../kernel/fault.ts'
import { oneOf, accepted } from '../../kernel/variables.ts'
import { validate } from '../../kernel/validate.ts'
import { NewUser } from '../../services/links/people/users/input.ts'
import {
  changeDisabled,
  changeRole,
  createUser,
  findUser,
} from '../../services/links/people/users/accounts.ts'
import { refuseGroup } from '../../services/links/people/users/added-groups.ts'
import { checkTransfer, transferUser } from '../../services/links/names/members/user-transfer.ts'
import { command, JSON_FLAG, readFields, text, value, type Call } from '../frame/command.ts'
import { printRows } from '../frame/output.ts'
import type { Database } from '../../db/client.ts'
import { memberQueries, type Places } from '../../db/links/names/members.ts'
import { tokenQueries } from '../../db/links/people/tokens.ts'
import { isUuid } from '../../kernel/text.ts'
import { DURATION_FORM } from '../../kernel/time.ts'
import {
  createToken,
  newTokenOf,
  revokeToken,
  TokenForm,
} from '../../services/links/people/tokens/changes.ts'

const EMAIL = text('EMAIL', 'the e-mail address of the user')
const ADD_ARGS = { email: EMAIL }
const ADD_FLAGS = {
  name: text('NAME', 'the name that people see'),
  admin: { summary: 'an admin may change every link' },
}

/** All of them: the list is printed at once. */
const MAX_USERS = Number.MAX_SAFE_INTEGER

const scope = oneOf('full', 'read', 'create')

const tokenId = accepted('the id of a token; see: gatehouse token list EMAIL', (text) =>
  isUuid(text) ? text : undefined,
)

type TokenFlags = Readonly<Record<'name' | 'scope' | 'expires', string | undefined>>

export const commands = [
  command({
    name: 'user add',
    summary: 'add somebody who has links',
    args: ADD_ARGS,
    flags: ADD_FLAGS,
    needs: 'database',
    check: (call) => void readNewUser(call),
    async run(call, tools) {
      const user = await createUser(tools, readNewUser(call), tools.now())
      const next = `gatehouse token create ${user.email}`
      tools.output.err(`${user.email} is a user now; create a token with: ${next}`)
    },
  }),
  command({
    name: 'user list',
    summary: 'list the users',
    flags: { json: JSON_FLAG },
    needs: 'database',
    async run({ flags: { json } }, { db, output }) {
      const users = await userQueries.listUsers(db, { after: '', limit: MAX_USERS })
      printRows(output, json, users, {
        EMAIL: ({ email }) => email,
        NAME: ({ display_name }) => display_name,
        ROLE: ({ role }) => role,
        CREATED: ({ created_at }) => created_at.toISOString(),
        DISABLED: ({ disabled_at }) => disabled_at?.toISOString() ?? 'no',
      })
    },
  }),
  command({
    name: 'user role',
    summary: 'make somebody an admin, or a user again',
    args: { email: EMAIL, role: value('user|admin', 'the new role', oneOf('user', 'admin')) },
    needs: 'database',
    async run({ args: { email, role } }, tools) {
      const known = await knownUser(tools.db, email)
      const changed = await changeRole(tools, known.id, role)
      tools.output.err(`${changed.email} has role ${changed.role} now`)
    },
  }),
  command({
    name: 'user disable',
    summary: 'refuse somebody to sign in and to use tokens; links go on',
    args: { email: EMAIL },
    needs: 'database',
    async run({ args: { email } }, tools) {
      const known = await knownUser(tools.db, email)
      await changeDisabled(tools, known.id, true, tools.now())
      tools.output.err(`${known.email} is disabled now`)
    },
  }),
  command({
    name: 'user enable',
    summary: 'let somebody who was disabled sign in and use tokens again',
    args: { email: EMAIL },
    needs: 'database',
    async run({ args: { email } }, tools) {
      const known = await knownUser(tools.db, email)
      await changeDisabled(tools, known.id, false, tools.now())
      tools.output.err(`${known.email} is enabled now`)
    },
  }),
  command({
    name: 'user transfer',
    summary: 'give all links of somebody to somebody else, with shares and deleted links',
    args: {
      from: text('FROM', 'the e-mail address of the user who has the links'),
      to: text('TO', 'the e-mail address of the user who gets them'),
    },
    flags: { 'dry-run': { summary: 'only say what would be moved' } },
    needs: 'database',
    async run({ args, flags }, tools) {
      const { db, output } = tools
      const from = await knownUser(db, args.from)
      const to = await knownUser(db, args.to)
      if (flags['dry-run']) {
        checkTransfer({ from, to })
        const places = await memberQueries.countPlaces(db, { user: from.id })
        output.err(`${to.email} would get from ${from.email}: ${placesText(places)}`)
        return
      }
      const places = await transferUser(tools, { from, to }, tools.now())
      output.err(`${to.email} got from ${from.email}: ${placesText(places)}`)
    },
  }),
  command({
    name: 'token create',
    summary: 'create a token for the links API; it is the last line of the output',
    args: { email: EMAIL },
    flags: {
      name: text('NAME', 'what it is for'),
      scope: value('full|read|create', 'what it may do, everything unless given', scope),
      expires: text('WHEN', `when it ends, never unless given: a time, or ${DURATION_FORM}`),
    },
    needs: 'database',
    check({ flags }, now) {
      requestOf(flags, now)
    },
    async run({ args: { email }, flags }, tools) {
      const { db, output } = tools
      const at = tools.now()
      const user = await knownUser(db, email)
      const made = await createToken(tools, user, requestOf(flags, at), at)
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
    args: { id: value('ID', 'the id of the token', tokenId) },
    needs: 'database',
    async run({ args: { id } }, tools) {
      await revokeToken(tools, id, null)
      tools.output.err(`token ${id} is revoked`)
    },
  }),
]

/** The user that a call describes. */
function readNewUser({ args, flags }: Call<typeof ADD_ARGS, typeof ADD_FLAGS>): NewUser {
  const { name, admin } = flags
  const fields = { ...args, name, role: admin ? 'admin' : 'user' }
  return readFields(() => validate(NewUser, fields), Object.keys(args))
}

/** What the flags ask for. */
function requestOf(flags: TokenFlags, now: Date) {
  const fields = { ...flags, name: flags.name ?? 'command line' }
  return readFields(() => newTokenOf(validate(TokenForm, fields), now))
}

function placesText({ owned, shared, deleted }: Places): string {
  return `links owned or co-owned: ${owned}, shared: ${shared}, deleted: ${deleted}`
}

/** The user with this e-mail address; throws 404 if nobody has it, and 400 for a group. */
export async function knownUser(db: Database, text: string) {
  refuseGroup(text)
  const user = await findUser(db, text)
  if (user !== undefined) return user
  const way = 'add one with: gatehouse user add EMAIL'
  throw notFound(`no user has the e-mail address "${text}"; ${way}`)
}
