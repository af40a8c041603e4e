import { noticeQueries as q } from '../../db/notices.ts'
import { actorText } from '../../kernel/actor.ts'
import { noteChange, type ChangeTools } from '../audit.ts'

/**
 * Records that somebody looks after what a notice reports: it is reminded of no more. The first
 * one counts. Without effect on what is over.
 */
export function acknowledgeNotice(
  { db, actor }: ChangeTools,
  id: number,
  now: Date,
): Promise<void> {
  return db.transaction(async (tx) => {
    const done = await q.acknowledgeNotice(tx, { id, now, by: actorText(actor) })
    if (done === undefined) return
    const note = { service: 'ops', action: 'notice acknowledge', subject: String(id) } as const
    await noteChange(tx, actor, note)
  })
}
