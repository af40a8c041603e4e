import type { Executor } from '../../../db/client.ts'
import { noticeQueries as q } from '../../../db/ops/notices.ts'
import { addEvent } from '../events.ts'

type NewEvent = Parameters<typeof addEvent>[1]

/**
 * Records an event with which something begins that lasts, and notifies operators of it. `key`
 * names what lasts; what is notified already must not begin again.
 */
export async function beginNotice(
  tx: Executor,
  event: NewEvent,
  key: string,
  aboutTarget: string | null = null,
) {
  const added = await addEvent(tx, event, { notify: false, waits: false })
  const { now } = event
  await q.beginNotice(tx, { event: added.id, now, key, about_target: aboutTarget })
  return added
}

/**
 * Records an event with which that ends. Operators are notified of it if they were of its
 * beginning.
 */
export async function endNotice(tx: Executor, event: NewEvent, key: string): Promise<void> {
  const { id } = await addEvent(tx, event, { notify: false })
  await q.endNotice(tx, { event: id, now: event.now, key })
}
