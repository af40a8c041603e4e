import * as Type from '../../../kernel/schema.ts'
import { Timestamp, exec, many, one, optional, sqlFile } from '../../sql-file.ts'

/** A search of the log that people have saved under a name. */
export const Search = Type.Object({
  id: Type.Integer(),
  name: Type.String(),
  query: Type.String({ description: 'The filters, as the address of the log has them' }),
  created_at: Timestamp,
})
export type Search = Type.Static<typeof Search>

export const searchQueries = sqlFile('sql/hooks/log/searches.sql', {
  listSearches: many(Search, { limit: 'int8' }),
  lockSearches: exec({}),
  addSearch: one(Search, { name: 'text', query: 'text' }),
  renameSearch: optional(Search, { id: 'int8', name: 'text' }),
  removeSearch: optional(Type.Pick(Search, ['name']), { id: 'int8' }),
})
