import Type from 'typebox'
import { nullable, Timestamp } from '../rows.ts'
import { Link, Uuid, type Owner } from './links.ts'

export const Role = Type.Union([Type.Literal('user'), Type.Literal('admin')])
export type Role = Type.Static<typeof Role>

/** links.md section 2, user profile. */
export const User = Type.Object({
  id: Uuid,
  email: Type.String(),
  display_name: Type.String(),
  role: Role,
  created_at: Timestamp,
})
export type User = Type.Static<typeof User>

export const ExportedLink = Type.Object({
  ...Link.properties,
  shared_with: Type.Array(Type.String()),
})
/** A link with the addresses of those with whom it is shared. */
export type ExportedLink = Type.Static<typeof ExportedLink>

/** A link that is about to be imported, with the ids of its people. */
export interface NewLink extends Omit<Link, 'id' | 'owners'> {
  readonly owners: readonly Pick<Owner, 'id' | 'is_primary'>[]
  readonly recipients: readonly string[]
}

/** What a token may do: `read` only GET, `create` only POST /links and its own profile. */
export const Scope = Type.Union([
  Type.Literal('full'),
  Type.Literal('read'),
  Type.Literal('create'),
])
export type Scope = Type.Static<typeof Scope>

export const Token = Type.Object({
  id: Uuid,
  name: Type.String(),
  scope: Scope,
  created_at: Timestamp,
  expires_at: nullable(Timestamp),
  last_used_at: nullable(Timestamp),
})
/** An API token as its owner sees it. */
export type Token = Type.Static<typeof Token>

/** A token that is about to be stored. */
export interface NewToken extends Pick<Token, 'name' | 'scope' | 'created_at' | 'expires_at'> {
  readonly token_hash: Buffer
}

export const Bearer = Type.Object({
  ...User.properties,
  token_id: Uuid,
  scope: Scope,
  last_used_at: nullable(Timestamp),
})
/** The user that a token stands for, and how far. */
export type Bearer = Type.Static<typeof Bearer>
