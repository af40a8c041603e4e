import * as Type from '../../../kernel/schema.ts'
import { exec, many, sqlFile } from '../../sql-file.ts'

/** A slug without a link that visitors asked for. */
export const MissingSlug = Type.Object({
  slug: Type.String(),
  visits: Type.Integer(),
  last_day: Type.String({ format: 'date', description: 'The last day (UTC) of a visit' }),
})
export type MissingSlug = Type.Static<typeof MissingSlug>

export const missingQueries = sqlFile('sql/links/visits/missing.sql', {
  saveMissing: exec({ day: 'text', missing: 'jsonb' }),
  trimMissing: exec({ day: 'text', before: 'text', keep: 'int8' }),
  listMissingSlugs: many(MissingSlug, { since: 'text', limit: 'int8' }),
})
