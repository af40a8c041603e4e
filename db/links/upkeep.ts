import type { Executor } from '../client.ts'
import { linksQueries as q } from './queries.ts'

/** Frees what was removed and renews the planner's statistics: the embedded engine has no autovacuum. */
export async function vacuum(db: Executor): Promise<void> {
  for (const query of [q.vacuumLinks, q.vacuumTags, q.vacuumClicks]) await db.run(query, [])
}
