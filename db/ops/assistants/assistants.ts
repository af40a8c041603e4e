import * as Type from '../../../kernel/schema.ts'
import { nullable, Timestamp, exec, many, optional, sqlFile } from '../../sql-file.ts'

/** A person's own assistant, which calls `/mcp/ops`. `may_start`: also to start sessions. */
export const Assistant = Type.Object({
  name: Type.String(),
  may_start: Type.Boolean(),
  created_at: Timestamp,
  last_used_at: nullable(Timestamp),
})
export type Assistant = Type.Static<typeof Assistant>

/** An assistant as its calls are judged. */
const Caller = Type.Pick(Assistant, ['name', 'may_start'])
export type AssistantCaller = Type.Static<typeof Caller>

const Name = Type.Pick(Assistant, ['name'])

export const assistantQueries = sqlFile('sql/ops/assistants/assistants.sql', {
  listAssistants: many(Assistant, { limit: 'int8' }),
  findAssistant: optional(Caller, { token_hash: 'bytea' }),
  touchAssistant: exec({ name: 'text', now: 'timestamptz' }),
  addAssistant: optional(Name, {
    name: 'text',
    token_hash: 'bytea',
    may_start: 'bool',
    most: 'int8',
    now: 'timestamptz',
  }),
  removeAssistant: optional(Name, { name: 'text' }),
})
