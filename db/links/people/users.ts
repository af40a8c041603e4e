import * as Type from '../../../kernel/schema.ts'
import { Timestamp, Uuid, many, nullable, one, optional, sqlFile } from '../../sql-file.ts'

export const Role = Type.Enum(['user', 'admin'])
export type Role = Type.Static<typeof Role>

/** A user, as admins see them: the profile of links.md section 2 with `disabled_at`. */
export const User = Type.Object({
  id: Uuid,
  email: Type.String(),
  display_name: Type.String(),
  role: Role,
  created_at: Timestamp,
  disabled_at: nullable(Timestamp),
})
export type User = Type.Static<typeof User>

/** A user as their own profile has it (links.md section 2). */
export const Profile = Type.Omit(User, ['disabled_at'])

const Address = Type.Pick(User, ['email'])
const Count = Type.Object({ count: Type.Integer() })

/**
 * Users are known by their e-mail address, in lower case, and groups by their name, as in
 * `group:ops`.
 */
export const userQueries = sqlFile('sql/links/people/users.sql', {
  addUser: optional(User, {
    email: 'text',
    display_name: 'text',
    role: 'text',
    created_at: 'timestamptz',
  }),
  findUserByEmail: optional(User, { email: 'text' }),
  listIds: many(Type.Pick(User, ['id']), { emails: 'jsonb', limit: 'int8' }),
  listUsers: many(User, { after: 'text', limit: 'int8' }),
  listPrimaryOwners: many(Address, { limit: 'int8' }),
  listUsersBy: many(Address, { beginning: 'text', groups: 'bool', limit: 'int8' }),
  listPeopleOf: many(Address, {
    user: 'uuid',
    users: 'uuid[]',
    beginning: 'text',
    groups: 'bool',
    max_links: 'int8',
    limit: 'int8',
  }),
  countUsers: one(Count, { most: 'int8' }),
  lockAdmins: many(User, { user: 'uuid' }),
  setDisabled: optional(User, { user: 'uuid', at: 'timestamptz?' }),
  setRole: optional(User, { user: 'uuid', role: 'text' }),
})
