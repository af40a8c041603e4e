import type { Database } from '../client.ts'
import { migrationState } from '../migrate.ts'
import { serverQueries, tooOld, wronglyEncoded } from '../server.ts'
import { firstWithContent, NotEmpty } from './load.ts'
import { listTables } from './tables.ts'

/**
 * Looks whether rows can be written into a database, without changing it: it must be a server that is
 * new enough, and have nothing in it unless it stands at migration `level` already, when `load`
 * compares it. Throws an Error with one line.
 *
 * @returns the migration that it stands at; 0 for an empty one.
 */
export async function inspectTarget(db: Database, level: number): Promise<number> {
  const facts = await serverQueries.readServerFacts(db, {})
  const old = tooOld(facts)
  if (old !== undefined) throw new Error(old)
  if (facts.read_only) throw new Error('the server takes no writes: give the primary')
  const wrong = wronglyEncoded(facts)
  if (wrong !== undefined) throw new Error(wrong)
  const { applied, faults } = await migrationState(db)
  if (faults[0] !== undefined) throw new Error(faults[0])
  if (applied.length === 0 || applied.length === level) return applied.length
  const full = await firstWithContent(db, await listTables(db))
  if (full !== undefined) throw new NotEmpty(`${full} holds rows already`)
  return applied.length
}
