import * as Type from '../../../kernel/schema.ts'
import { exec, many, sqlFile } from '../../sql-file.ts'

/** links.md section 2, Tag; `link_count` counts links that the caller may see. */
export const Tag = Type.Object({ slug: Type.String(), link_count: Type.Integer() })
export type Tag = Type.Static<typeof Tag>

export const tagQueries = sqlFile('sql/links/names/tags.sql', {
  writeTags: exec({ slug: 'text', tags: 'jsonb', is_public: 'bool' }),
  writeHiddenTags: exec({ slugs: 'jsonb' }),
  countTags: exec({ links: 'jsonb' }),
  listTags: many(Tag, { after: 'text', limit: 'int8' }),
  listVisibleTags: many(Tag, { users: 'uuid[]', after: 'text', limit: 'int8' }),
})
