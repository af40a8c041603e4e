import * as Type from '../../../../kernel/schema.ts'
import { Role } from '../../../../db/links/people/users.ts'
import { field, parsed, withDefault } from '../../../../kernel/validate.ts'
import { MAX_EMAIL_LENGTH, readEmail } from './users.ts'

const MAX_NAME_LENGTH = 100
const WRONG_ROLE = 'must be user or admin'

/** What an admin says of a new user. Without a name, it is the first part of the address. */
export const NewUser = Type.Object({
  email: parsed(
    Type.String({ maxLength: MAX_EMAIL_LENGTH }),
    'must look like name@example.com',
    (given) => (typeof given === 'string' ? readEmail(given) : undefined),
  ),
  name: parsed(
    withDefault(Type.String({ maxLength: MAX_NAME_LENGTH }), ''),
    `must have 1 to ${MAX_NAME_LENGTH} characters, and no control characters`,
    readName,
  ),
  role: field(withDefault(Role, 'user'), { code: 'INVALID_ROLE', text: WRONG_ROLE }),
})
export type NewUser = Type.Static<typeof NewUser>

/** The role that a user is to have. */
export const RoleChange = Type.Object({
  role: field(Type.Enum(['user', 'admin'], { type: 'string' }), {
    wrong: 'is required and must be a string',
    enum: { code: 'INVALID_ROLE', text: WRONG_ROLE },
  }),
})

/** Whether a user is to be disabled. */
export const DisabledChange = Type.Object({
  disabled: field(Type.Boolean(), 'is required and must be true or false'),
})

function readName(given: unknown): string | undefined {
  if (typeof given !== 'string') return undefined
  const name = given.trim()
  return name.length <= MAX_NAME_LENGTH && !/\p{C}/u.test(name) ? name : undefined
}
