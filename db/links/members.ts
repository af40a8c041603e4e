import Type from 'typebox'
import { Timestamp, Uuid, exec, many, optional, sqlFile } from '../sql-file.ts'
import { Owner } from './links.ts'

/** A user who may read a link beside its owners. */
export const Share = Type.Object({
  id: Uuid,
  email: Type.String(),
  shared_by: Type.String(),
  created_at: Timestamp,
})
export type Share = Type.Static<typeof Share>

const member = { slug: 'text', user: 'uuid' } as const

export const memberQueries = sqlFile('sql/links/members.sql', {
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
})
