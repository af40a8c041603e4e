import type { Executor } from '../../db/client.ts'
import { eventQueries, type Event, type Level } from '../../db/ops/events.ts'

/** An event that happens `now`. */
export interface NewEvent extends Pick<Event, 'level' | 'service' | 'message'> {
  readonly session: number | null
  readonly now: Date
}

const WARNINGS = new Set(['warning', 'warn', 'degraded'])
const CRITICALS = new Set(['critical', 'error', 'err', 'fatal', 'failed', 'failure'])

/** Records an event. Operators are notified of critical ones, unless `notify` says otherwise. */
export function addEvent(
  db: Executor,
  event: NewEvent,
  notify = event.level === 'critical',
): Promise<Event> {
  return eventQueries.addEvent(db, { ...event, notify })
}

/** Maps an agent's word for a level to the level (decisions.md section 5). */
export function levelOf(word: string): Level {
  const folded = word.trim().toLowerCase()
  if (WARNINGS.has(folded)) return 'warning'
  return CRITICALS.has(folded) ? 'critical' : 'info'
}
