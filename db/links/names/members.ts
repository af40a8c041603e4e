import * as Type from '../../../kernel/schema.ts'
import { Timestamp, Uuid, exec, many, one, optional, sqlFile } from '../../sql-file.ts'
import { Link, Owner } from './links.ts'

/** A user who may read a link beside its owners. */
export const Share = Type.Object({
  id: Uuid,
  email: Type.String(),
  shared_by: Type.String(),
  created_at: Timestamp,
})
export type Share = Type.Static<typeof Share>

/** How many links a user has a place in. */
export const Places = Type.Object({
  owned: Type.Integer(),
  shared: Type.Integer(),
  deleted: Type.Integer(),
})
export type Places = Type.Static<typeof Places>

const Slug = Type.Pick(Link, ['slug'])
const batch = { user: 'uuid', limit: 'int8' } as const
/** Who gets whose place, and what the history says of it. */
export const move = {
  from: 'uuid',
  to: 'uuid',
  at: 'timestamptz',
  actor: 'text',
  detail: 'jsonb',
} as const

const member = { slug: 'text', user: 'uuid' } as const

export const memberQueries = sqlFile('sql/links/names/members.sql', {
  listOwners: many(Owner, { link: 'uuid' }),
  addOwner: optional(Type.Pick(Owner, ['is_primary']), { ...member, is_primary: 'bool' }),
  makePrimary: exec(member),
  makeCoOwner: exec({ slug: 'text' }),
  removeOwner: optional(Type.Pick(Owner, ['is_primary', 'email']), member),
  listShares: many(Share, { link: 'uuid' }),
  addShare: optional(Type.Pick(Share, ['created_at']), {
    ...member,
    shared_by: 'text',
    created_at: 'timestamptz',
  }),
  removeShare: optional(Type.Pick(Share, ['email']), member),
  countPlaces: one(Places, { user: 'uuid' }),
  lockOwnedLinks: many(Slug, batch),
  moveOwners: exec({ ...move, slugs: 'jsonb' }),
  lockSharedLinks: many(Slug, batch),
  moveShares: exec({ ...move, slugs: 'jsonb' }),
})
