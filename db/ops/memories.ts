import Type from 'typebox'
import { nullable, Timestamp, exec, many, one, optional, sqlFile } from '../sql-file.ts'

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

export const memoryQueries = sqlFile('sql/ops/memories.sql', {
  addMemory: one(Memory, {
    service: 'text?',
    category: 'text',
    observation: 'text',
    confidence: 'float8',
    active: 'bool',
    now: 'timestamptz',
    session: 'int8?',
    tier: 'int2',
  }),
  strengthenMemory: optional(Memory, {
    service: 'text?',
    category: 'text',
    observation: 'text',
    now: 'timestamptz',
  }),
  fadeMemories: exec({ now: 'timestamptz' }),
  updateMemory: optional(Memory, {
    id: 'int8',
    observation: 'text',
    confidence: 'float8',
    active: 'bool',
    now: 'timestamptz',
  }),
  removeMemory: optional(Type.Pick(Memory, ['id']), { id: 'int8' }),
  findMemory: optional(Memory, { id: 'int8' }),
  listMemories: many(Memory, {
    service: 'text?',
    category: 'text?',
    offset: 'int8',
    limit: 'int8',
  }),
  listActiveMemories: many(Memory, { service: 'text?', category: 'text?', limit: 'int8' }),
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
