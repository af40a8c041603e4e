import type { Database } from '../db/client.ts'
import { userQueries as q, type User } from '../db/links/users.ts'
import { validate } from '../kernel/validate.ts'
import { changeRole, createUser, isRole, NewUser, readEmail } from '../services/links/users.ts'
import { parseAction } from './action-arguments.ts'
import { DONE, fail, table, UsageError, type Output } from './command.ts'

export const USER_USAGE =
  'gatehouse user add EMAIL [--name N] [--admin] | list [--json] | role EMAIL user|admin'

export interface UserTools {
  readonly db: Database
  readonly now: () => Date
}

const ARGUMENTS = {
  command: 'user',
  flags: { name: { type: 'string' }, admin: { type: 'boolean' }, json: { type: 'boolean' } },
  takes: { add: ['name', 'admin'], list: ['json'], role: [] },
  words: { add: ['EMAIL'], role: ['EMAIL', 'ROLE'] },
} as const

/** Rows that one statement reads. */
const PAGE = 1_000

/** Reads the arguments; throws `UsageError` for those that are wrong. */
export function parseUser(args: readonly string[]) {
  const parsed = parseAction(args, ARGUMENTS)
  const [, role] = parsed.words
  if (role !== undefined && !isRole(role)) throw new UsageError('ROLE must be user or admin')
  return parsed
}

/** `gatehouse user …`: who has links and tokens. */
export async function runUser(
  args: readonly string[],
  { db, now }: UserTools,
  output: Output,
): Promise<number> {
  const { action, words, flags } = parseUser(args)
  const [email = '', role] = words
  if (action === 'list') return list(db, flags.json === true, output)
  if (action === 'add') {
    const role = flags.admin ? 'admin' : 'user'
    const user = await createUser(db, validate(NewUser, { email, name: flags.name, role }), now())
    output.err(
      `${user.email} is a user now; make a token with: gatehouse token create ${user.email}`,
    )
    return DONE
  }
  const known = await q.findUserByEmail(db, { email: readEmail(email) ?? '' })
  if (known === undefined || !isRole(role)) {
    return fail(output, `no user has the e-mail address "${email}"; see: gatehouse user list`)
  }
  const changed = await changeRole(db, known.id, role)
  output.err(`${changed.email} has role ${changed.role} now`)
  return DONE
}

async function list(db: Database, json: boolean, output: Output): Promise<number> {
  const users: User[] = []
  for (;;) {
    const page = await q.listUsers(db, { after: users.at(-1)?.email ?? '', limit: PAGE })
    users.push(...page)
    if (page.length < PAGE) break
  }
  if (json) {
    output.out(JSON.stringify(users))
    return DONE
  }
  const rows = users.map(({ email, display_name, role, created_at }) => [
    email,
    display_name,
    role,
    created_at.toISOString(),
  ])
  for (const line of table(['EMAIL', 'NAME', 'ROLE', 'CREATED'], rows)) output.out(line)
  return DONE
}
