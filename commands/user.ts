import { userQueries, type User } from '../db/links/users.ts'
import { notFound } from '../kernel/fault.ts'
import { oneOf } from '../kernel/readings.ts'
import { validate } from '../kernel/validate.ts'
import { changeRole, createUser, NewUser, readEmail } from '../services/links/users.ts'
import { command, JSON_FLAG, text, value } from './command.ts'
import { DONE, printRows } from './output.ts'

/** Rows that one statement reads. */
const PAGE = 1_000

const EMAIL = text('EMAIL', 'the e-mail address of the user')

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
      return DONE
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
      return DONE
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
      const known = await userQueries.findUserByEmail(db, { email: readEmail(email) ?? '' })
      if (known === undefined) {
        throw notFound(`no user has the e-mail address "${email}"; see: gatehouse user list`)
      }
      const changed = await changeRole(db, known.id, role)
      output.err(`${changed.email} has role ${changed.role} now`)
      return DONE
    },
  }),
]
