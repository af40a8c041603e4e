import type { Database, Executor } from '../../db/client.ts'
import { noticeQueries as q, type Level, type Site } from '../../db/notices.ts'

/** Something that lasts now, and that people hear of. */
export interface Firing {
  /** Names it among all that lasts; begins with the prefix of its group. */
  key: string
  level: Level
  message: string
  /** The page that shows it. */
  path: string
  /** The target of notices that it reports: the other ones hear of it. */
  aboutTarget?: string
}

/** What one part finds at once, such as the alarms of hooks. */
interface FiringGroup {
  service: string
  site: Site
  /** Of the keys of this group alone. */
  prefix: string
  now: Date
}

type ReadFiring = (db: Executor) => Promise<readonly Firing[]>

/** More than an installation has: what is beyond is not told. */
const MAX_LASTING = 10_000

/**
 * Makes the notices of a group what fires now: tells what has begun, and what is over. Instances
 * see an alarm begin and end at different moments. So what fires is read from the database, under
 * the lock of notices. A round that finds no change takes no lock.
 */
export async function reconcileNotices(
  db: Database,
  group: FiringGroup,
  readFiring: ReadFiring,
): Promise<void> {
  if (!hasChanges(await compare(db, group, readFiring))) return
  await db.transaction(async (tx) => {
    await q.lockNotices(tx, {})
    const { begun, over } = await compare(tx, group, readFiring)
    for (const firing of begun) await beginFiring(tx, group, firing)
    for (const { key, message } of over) {
      await q.endNotice(tx, { key, message: `Over: ${message}`, session: null, now: group.now })
    }
  })
}

type Changes = Awaited<ReturnType<typeof compare>>

function hasChanges({ begun, over }: Changes): boolean {
  return begun.length + over.length > 0
}

async function compare(db: Executor, { prefix }: FiringGroup, readFiring: ReadFiring) {
  const all = await readFiring(db)
  const firing = all.slice(0, MAX_LASTING)
  const lasting = await q.listLasting(db, { prefix, limit: MAX_LASTING })
  const fires = new Set(firing.map(({ key }) => key))
  const lasts = new Set(lasting.map(({ key }) => key))
  return {
    begun: firing.filter(({ key }) => !lasts.has(key)),
    over: lasting.filter(({ key }) => !fires.has(key)),
  }
}

async function beginFiring(
  tx: Executor,
  { service, site, now }: FiringGroup,
  { key, level, message, path, aboutTarget }: Firing,
): Promise<void> {
  const about = { service, site, path, about_target: aboutTarget ?? null }
  await q.addNotice(tx, { ...about, level, message, session: null, now, key })
}
