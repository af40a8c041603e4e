import * as Type from '../../../kernel/schema.ts'
import { Timestamp, Uuid, exec, many, optional, sqlFile } from '../../sql-file.ts'
import { Link } from './links.ts'
import { move } from './members.ts'

const { slug, url, title, visibility, append_path, tags, aliases } = Link.properties

/** A deleted link that can be restored. */
export const DeletedLink = Type.Object({
  id: Uuid,
  slug,
  url,
  title,
  visibility,
  deleted_at: Timestamp,
  deleted_by: Type.String({ description: 'E-mail address' }),
  deletion: Type.Integer({ description: 'Its number; the newest deletion has the highest' }),
})
export type DeletedLink = Type.Static<typeof DeletedLink>

/** What restoring a link needs of it, and whether the caller was its owner. */
const LockedLink = Type.Object({
  deletion: Type.Integer(),
  slug,
  url,
  title,
  visibility,
  append_path,
  tags,
  aliases,
  is_owner: Type.Boolean(),
})

export const deletedQueries = sqlFile('sql/links/names/deleted.sql', {
  lockMoves: exec({}),
  moveLink: exec({ id: 'uuid', at: 'timestamptz', actor: 'text', changes: 'int8' }),
  lockDeletedLink: optional(LockedLink, { id: 'uuid', users: 'uuid[]' }),
  restoreLink: optional(Type.Object({ slug }), { deletion: 'int8', slug: 'text', names: 'jsonb' }),
  lockDeletedOwned: many(Type.Object({ deletion: Type.Integer() }), {
    user: 'uuid',
    limit: 'int8',
  }),
  moveDeletedOwners: exec({ ...move, deletions: 'jsonb' }),
  listDeletedLinks: many(DeletedLink, { users: 'uuid[]?', before: 'int8', limit: 'int8' }),
})
