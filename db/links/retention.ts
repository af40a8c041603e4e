import * as Type from '../../kernel/schema.ts'
import { nullable, one, sqlFile, Uuid } from '../sql-file.ts'

/** How many rows a batch has removed. */
const Removed = Type.Object({ removed: Type.Integer() })

export const retentionQueries = sqlFile('sql/links/retention.sql', {
  tryPruningLock: one(Type.Object({ taken: Type.Boolean() }), {}),
  pruneClicks: one(Removed, { before: 'text', limit: 'int8' }),
  pruneSources: one(Removed, { before: 'text', limit: 'int8' }),
  mergeSources: one(Removed, { before: 'text', hosts: 'int4', limit: 'int8' }),
  pruneDeleted: one(Removed, { before: 'timestamptz', limit: 'int8' }),
  pruneChanges: one(Type.Object({ ...Removed.properties, last: nullable(Uuid) }), {
    after: 'uuid',
    links: 'int8',
    keep: 'int8',
    before: 'timestamptz',
    limit: 'int8',
  }),
})
