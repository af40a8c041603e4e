import type { Executor } from '../../db/client.ts'
import { noticeQueries as q } from '../../db/notices.ts'
import { addEvent } from './events.ts'

type NewEvent = Parameters<typeof addEvent>[1]

interface BeginOptions {
  /** The page that shows it: that of its session, or of all events, unless it is given. */
  path?: string
  /** Whether it waits for a person on the dashboard. */
  waits?: boolean
}

/**
 * Records the event that begins a lasting state, and notifies operators of it. `key` names the
 * state: while it lasts, operators are not notified of it again.
 */
export async function beginNotice(
  tx: Executor,
  event: NewEvent,
  key: string,
  { path, waits = false }: BeginOptions = {},
) {
  const added = await addEvent(tx, event, { notify: false, waits })
  const { session, service, level, message, now } = event
  await q.addNotice(tx, {
    service: service ?? 'gatehouse',
    level,
    message,
    session,
    now,
    key,
    site: 'ops',
    path: path ?? (session === null ? '/events' : `/sessions/${session}`),
    about_target: null,
  })
  return added
}

/**
 * Records the event that ends a lasting state. Operators are notified if they were notified of
 * its beginning.
 */
export async function endNotice(tx: Executor, event: NewEvent, key: string): Promise<void> {
  await addEvent(tx, event, { notify: false })
  const { session, message, now } = event
  await q.endNotice(tx, { session, message, now, key })
}
