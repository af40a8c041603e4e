import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, Uuid, exec, many, optional, sqlFile } from '../../sql-file.ts'
import { User } from './users.ts'

/** What a token may do: `read` only GET, `create` only POST /links and its own profile. */
export const Scope = Type.Enum(['full', 'read', 'create'])
export type Scope = Type.Static<typeof Scope>

/** An API token as its owner sees it. */
export const Token = Type.Object({
  id: Uuid,
  name: Type.String(),
  scope: Scope,
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  last_used_at: nullable(Timestamp),
})
export type Token = Type.Static<typeof Token>

/** The user that a token stands for, and what the token may do. */
export const Bearer = Type.Object({
  ...User.properties,
  token_id: Uuid,
  token_name: Type.String(),
  scope: Scope,
  last_used_at: nullable(Timestamp),
  /** An expired token may do nothing. */
  is_expired: Type.Boolean(),
})
export type Bearer = Type.Static<typeof Bearer>

const RemovedToken = Type.Object({
  name: Token.properties.name,
  email: User.properties.email,
})

export const tokenQueries = sqlFile('sql/links/people/tokens.sql', {
  lockTokens: exec({ user: 'uuid' }),
  addToken: optional(Token, {
    user: 'uuid',
    name: 'text',
    scope: 'text',
    token_hash: 'bytea',
    created_at: 'timestamptz',
    expires_at: 'timestamptz?',
    max: 'int8',
  }),
  removeExpiredTokens: exec({ user: 'uuid', now: 'timestamptz' }),
  listTokens: many(Token, { user: 'uuid' }),
  removeToken: optional(RemovedToken, { id: 'uuid', user: 'uuid?' }),
  findBearer: optional(Bearer, { token_hash: 'bytea', now: 'timestamptz' }),
  touchToken: exec({ id: 'uuid', now: 'timestamptz' }),
})
