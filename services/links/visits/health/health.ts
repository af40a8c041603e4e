import {
  healthQueries as q,
  type Health,
  type HealthState,
} from '../../../../db/links/visits/health.ts'
import type { Database, Executor } from '../../../../db/client.ts'
import { historyQueries } from '../../../../db/links/names/history.ts'
import { found } from '../../../../kernel/fault.ts'
import type { Slice } from '../../names/lists/lists.ts'
import { changeLink } from '../../names/links/links.ts'
import type { Caller } from '../../people/users/groups.ts'

/** The checked links in a state: those that a user owns, and all for admins. */
export function listChecked(db: Database, caller: Caller, state: HealthState, slice: Slice) {
  return q.listChecked(db, { state, users: caller.role === 'admin' ? null : caller.ids, ...slice })
}

/** What is known of the address of a link. */
export async function healthOf(db: Executor, link: string): Promise<Health> {
  return found(await q.findHealth(db, { link }), 'link')
}

/** Which of some links are broken. */
export async function brokenOf(
  db: Executor,
  slugs: readonly string[],
): Promise<ReadonlySet<string>> {
  const broken = await q.listBrokenOf(db, { slugs, limit: slugs.length })
  return new Set(broken.map(({ slug }) => slug))
}

/** Leaves the address of a link out of the checks, or has it checked again. */
export function setChecked(
  db: Database,
  caller: Caller,
  id: string,
  enabled: boolean,
  at: Date,
): Promise<Health> {
  return changeLink(db, caller, id, async (tx) => {
    const before = await healthOf(tx, id)
    if (before.enabled === enabled) return before
    await q.setChecked(tx, { link: id, enabled })
    const change = { action: enabled ? 'checks on' : 'checks off', detail: {} }
    await historyQueries.saveChange(tx, { link: id, at, actor: caller.email, ...change })
    return healthOf(tx, id)
  })
}
