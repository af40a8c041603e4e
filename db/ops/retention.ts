import type { Database } from '../client.ts'
import { one } from '../rows.ts'
import { opsQueries as q } from './queries.ts'

/** What retention removes from; `sessions` are removed by whole escalation chains, `lines` are their output. */
export type Pruned = 'lines' | 'sessions' | 'events' | 'actions' | 'alerts'

const QUERIES = {
  lines: q.pruneLines,
  sessions: q.pruneSessions,
  events: q.pruneEvents,
  actions: q.pruneActions,
  alerts: q.pruneAlerts,
} as const

/** Removes a little of what is from before a time, and gives how much; undefined while another instance prunes. */
export function pruneOps(
  db: Database,
  what: Pruned,
  before: Date,
  limit: number,
): Promise<number | undefined> {
  return db.transaction(async (tx) => {
    const { taken } = await one<{ readonly taken: boolean }>(tx, q.takePruningTurn, [])
    if (!taken) return undefined
    return (await one<{ readonly removed: number }>(tx, QUERIES[what], [before, limit])).removed
  })
}
