import Type from 'typebox'
import type { Database } from '../client.ts'
import { migrationState } from '../migrate.ts'
import type { Query } from '../queries.ts'
import { one } from '../rows.ts'
import { firstWithContent, NotEmpty } from './load.ts'
import { listTables } from './tables.ts'

const SERVER: Query = {
  name: 'targetServer',
  text: `select current_setting('server_version_num')::integer as version, current_setting('server_encoding') as encoding`,
  result: 'one',
  args: [],
  row: Type.Object({ version: Type.Integer(), encoding: Type.String() }),
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const targetQueries: readonly Query[] = [SERVER]

const OLDEST = 15

/**
 * Looks whether rows can be written into a database, without changing it: it must be a server that is
 * new enough, and have nothing in it unless it stands at migration `level` already, when `load`
 * compares it. Throws an Error with one line.
 *
 * @returns the migration that it stands at; 0 for an empty one.
 */
export async function inspectTarget(db: Database, level: number): Promise<number> {
  const { version, encoding } = await one<{ version: number; encoding: string }>(db, SERVER, [])
  const major = Math.floor(version / 10_000)
  if (major < OLDEST) {
    throw new Error(`the server is PostgreSQL ${major}; ${OLDEST} or newer is needed`)
  }
  if (encoding !== 'UTF8') {
    throw new Error(`the database has the encoding ${encoding}; make one with UTF8`)
  }
  const { applied, faults } = await migrationState(db)
  if (faults[0] !== undefined) throw new Error(faults[0])
  if (applied.length === 0 || applied.length === level) return applied.length
  const full = await firstWithContent(db, await listTables(db))
  if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
  return applied.length
}
