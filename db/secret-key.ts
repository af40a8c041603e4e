import * as Type from '../kernel/schema.ts'
import { Bytes, exec, one, optional, sqlFile } from './sql-file.ts'

const Mark = Type.Object({ mark: Bytes })

/** How many of each noun have a secret that a key can't read. */
export const Unreadable = Type.Object({
  providers: Type.Integer(),
  destinations: Type.Integer(),
  checks: Type.Integer(),
  notice_targets: Type.Integer(),
})
export type Unreadable = Type.Static<typeof Unreadable>

/** The key that encrypts secrets, known by the mark of what it has sealed. */
export const secretKeyQueries = sqlFile('sql/secret-key.sql', {
  recordSecretKey: exec({ mark: 'bytea' }),
  readSecretKey: optional(Mark, {}),
  countUnreadable: one(Unreadable, { mark: 'bytea' }),
})
