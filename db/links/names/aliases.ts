import * as Type from '../../../kernel/schema.ts'
import { exec, many, optional, sqlFile } from '../../sql-file.ts'
import { Link } from './links.ts'

export const aliasQueries = sqlFile('sql/links/names/aliases.sql', {
  writeNames: optional(Type.Object({ name: Type.String() }), { link: 'uuid', names: 'jsonb' }),
  renameLink: exec({ link: 'uuid', slug: 'text', at: 'timestamptz' }),
  listNamesakes: many(Type.Pick(Link, ['id']), { name: 'text', limit: 'int8' }),
})
