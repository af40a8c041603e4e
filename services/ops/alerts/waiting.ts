import type { Database } from '../../../db/client.ts'
import { approvalQueries, type Approval } from '../../../db/ops/agent/approvals.ts'
import type { Event } from '../../../db/ops/events.ts'
import {
  waitingQueries as q,
  type WaitingAlert,
  type WaitingSession,
} from '../../../db/ops/alerts/waiting.ts'
import type { CheckState } from '../../../db/ops/watch/checks.ts'
import { noticeQueries, type Unsent } from '../../../db/notices.ts'
import { makeChange, type ChangeTools } from '../../audit.ts'
import type { Health } from '../watch/checks/health.ts'

/** Something that waits for a person, since a time. */
export type WaitingItem = { at: Date } & (
  | { kind: 'event'; event: Event; times: number }
  | { kind: 'alert'; alert: WaitingAlert }
  | { kind: 'session'; session: WaitingSession }
  /** It has not been ok, or not been known, for long. */
  | { kind: 'check'; check: CheckState }
  /** Operations that wait for approval, the oldest first. */
  | { kind: 'approvals'; approvals: readonly Approval[] }
  /** What a target of notices has not taken. */
  | { kind: 'notices'; unsent: Unsent }
)

/** What waits for a person, newest first. */
export interface Waiting {
  items: readonly WaitingItem[]
  /** When it was read: what came later was not seen. */
  readAt: Date
  /** Whether there is more. */
  isCut: boolean
}

/** Older things are no longer shown. */
const WAITING_MS = 7 * 24 * 3_600_000
/** A check that has failed for less may be ok again in the next session. */
const LASTING_MS = 3_600_000
/** Read of each kind. */
const MAX_ROWS = 200

/** Reads at most `limit` things that wait. What lasts waits until it is over. */
export async function readWaiting(
  db: Database,
  health: Health,
  now: Date,
  limit: number,
): Promise<Waiting> {
  const { seen_until: seen } = await q.readSeen(db, {})
  const since = new Date(Math.max(now.getTime() - WAITING_MS, seen?.getTime() ?? 0))
  const listed = { since, limit: Math.min(limit, MAX_ROWS) + 1 }
  const [events, alerts, sessions, unsent, approvals] = await Promise.all([
    q.listWaitingEvents(db, { since, limit: MAX_ROWS }),
    q.listWaitingAlerts(db, listed),
    q.listWaitingSessions(db, listed),
    noticeQueries.listUnsent(db, { limit: MAX_ROWS }),
    approvalQueries.listPendingApprovals(db, { limit: MAX_ROWS }),
  ])
  const all: readonly WaitingItem[] = [
    ...withoutRepeats(events),
    ...alerts.map((alert) => ({ kind: 'alert', at: alert.last_seen, alert }) as const),
    ...sessions.map((session) => ({ kind: 'session', at: session.ended_at, session }) as const),
    ...lastingChecks(health, now),
    ...pendingApprovals(approvals),
    ...unsent.map((one) => ({ kind: 'notices', at: one.newest, unsent: one }) as const),
  ]
  const items = all.toSorted((a, b) => b.at.getTime() - a.at.getTime())
  return { items: items.slice(0, limit), readAt: now, isCut: items.length > limit }
}

/** One thing for all of them: a person decides on one page. */
function pendingApprovals(approvals: readonly Approval[]): readonly WaitingItem[] {
  const newest = approvals.at(-1)
  return newest === undefined ? [] : [{ kind: 'approvals', at: newest.created_at, approvals }]
}

function lastingChecks({ checks }: Health, now: Date): readonly WaitingItem[] {
  const bad = [...checks.fail, ...checks.warn, ...checks.unknown]
  return bad
    .filter(({ checked_at, since }) => checked_at !== null && isLasting(since, now))
    .map((check) => ({ kind: 'check', at: check.since, check }) as const)
}

function isLasting(since: Date, now: Date): boolean {
  return now.getTime() - since.getTime() > LASTING_MS
}

/** A person has seen what happened until a time. */
export function markSeen(tools: ChangeTools, until: Date): Promise<void> {
  const subject = `what happened until ${until.toISOString()}`
  const note = { service: 'ops', action: 'waiting seen', subject } as const
  return makeChange(tools, note, (tx) => q.markSeen(tx, { until }))
}

/** Agents say the same words in each session: the newest of them stands for all. */
function withoutRepeats(events: readonly Event[]): readonly WaitingItem[] {
  const same = Map.groupBy(events, ({ service, message }) => JSON.stringify([service, message]))
  return [...same.values()].flatMap(([event, ...others]) => {
    if (event === undefined) return []
    return { kind: 'event', at: event.created_at, event, times: others.length + 1 } as const
  })
}
