import type { Executor } from '../../db/client.ts'
import type { Level } from '../../db/notices.ts'
import { eventQueries as q, type Event } from '../../db/ops/events.ts'

const WARNINGS = new Set(['warning', 'warn', 'degraded'])
const CRITICALS = new Set(['critical', 'error', 'err', 'fatal', 'failed', 'failure'])

/**
 * Records an event. Operators are notified of critical ones, unless `notify` says otherwise, and
 * those wait for a person on the dashboard, unless `waits` says otherwise.
 */
export function addEvent(
  db: Executor,
  event: Omit<Parameters<typeof q.addEvent>[1], 'notify' | 'waits'>,
  { notify = event.level === 'critical', waits = event.level === 'critical' } = {},
): Promise<Event> {
  return q.addEvent(db, { ...event, notify, waits })
}

/** Maps an agent's word for a level to the level (decisions.md section 5). */
export function levelOf(word: string): Level {
  const folded = word.trim().toLowerCase()
  if (WARNINGS.has(folded)) return 'warning'
  return CRITICALS.has(folded) ? 'critical' : 'info'
}
