import * as Type from '../../../kernel/schema.ts'
import {
  nullable,
  Timestamp,
  exec,
  many,
  one,
  optional,
  sqlFile,
  filtered,
} from '../../sql-file.ts'

/** ops.md section 2, Memory. */
export const Memory = Type.Object({
  id: Type.Integer(),
  service: nullable(Type.String()),
  category: Type.String(),
  observation: Type.String(),
  confidence: Type.Number(),
  active: Type.Boolean(),
  created_at: Timestamp,
  updated_at: Timestamp,
  session_id: nullable(Type.Integer()),
  tier: Type.Integer(),
})
export type Memory = Type.Static<typeof Memory>

/** A memory with what the API does not show: the person who confirmed what a session noted. */
export const StoredMemory = Type.Object({
  ...Memory.properties,
  confirmed_by: nullable(Type.String()),
})
export type StoredMemory = Type.Static<typeof StoredMemory>

/** What a memory is about. */
const about = { service: 'text?', category: 'text' } as const
const filter = { service: 'text?', category: 'text?' } as const
/** What operators may change later. */
const changed = {
  observation: 'text',
  confidence: 'float8',
  active: 'bool',
  now: 'timestamptz',
} as const

export const memoryQueries = sqlFile('sql/ops/agent/memories.sql', {
  addMemory: one(StoredMemory, { ...about, ...changed, session: 'int8?', tier: 'int2' }),
  strengthenMemory: optional(StoredMemory, {
    ...about,
    observation: 'text',
    session: 'int8?',
    now: 'timestamptz',
  }),
  confirmMemory: optional(StoredMemory, {
    id: 'int8',
    by: 'text',
    confidence: 'float8',
    now: 'timestamptz',
  }),
  fadeMemories: exec({ now: 'timestamptz' }),
  updateMemory: optional(StoredMemory, { id: 'int8', ...changed }),
  removeMemory: optional(Type.Pick(Memory, ['id']), { id: 'int8' }),
  findMemory: optional(StoredMemory, { id: 'int8' }),
  listMemories: filtered(many(StoredMemory, { ...filter, offset: 'int8', limit: 'int8' })),
  pageMemories: filtered(
    many(StoredMemory, {
      ...filter,
      confidence: 'float8',
      id: 'int8',
      limit: 'int8',
    }),
  ),
  countMemories: filtered(
    one(Type.Object({ count: Type.Integer() }), { ...filter, limit: 'int8' }),
  ),
  listActiveMemories: filtered(many(StoredMemory, { ...filter, limit: 'int8' })),
  trimMemories: exec({ added: 'int8', kept: 'int8' }),
  noteCheckTime: exec({
    service: 'text',
    check: 'text',
    observation: 'text',
    confidence: 'float8',
    now: 'timestamptz',
    session: 'int8',
    tier: 'int2',
  }),
})
