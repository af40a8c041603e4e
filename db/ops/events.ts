import type { Executor } from '../client.ts'
import { many, one } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type { Event } from './rows.ts'

/** What a list of events is narrowed to; null for all. */
export interface EventFilter {
  readonly level: string | null
  readonly service: string | null
  readonly session: number | null
}

/** Records an event. `isTold`: a notice of it is due; without it, that is so for a critical one. */
export function addEvent(
  db: Executor,
  event: Omit<Event, 'id'>,
  isTold = event.level === 'critical',
): Promise<Event> {
  const { session_id, level, service, message, created_at } = event
  return one(db, q.addEvent, [session_id, level, service, message, created_at, isTold])
}

/** The same for one that is not critical, and that its session has no second time: it may be tried again. */
export async function addEventOnce(db: Executor, event: Omit<Event, 'id'>): Promise<void> {
  const { session_id, level, service, message, created_at } = event
  await db.run(q.addEventOnce, [session_id, level, service, message, created_at])
}

/** Events, newest first. */
export function listEvents(
  db: Executor,
  { level, service, session }: EventFilter,
  offset: number,
  limit: number,
): Promise<readonly Event[]> {
  return many(db, q.listEvents, [offset, limit, level, service, session])
}
