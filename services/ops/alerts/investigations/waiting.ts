import type { Executor } from '../../../../db/client.ts'
import {
  investigationQueries as q,
  type Investigation,
  type WaitingCheck,
} from '../../../../db/ops/alerts/investigations.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { found } from '../../../../kernel/fault.ts'
import { pauseProblem, readPause } from '../../agent/pause.ts'
import { spentProblem, spentToday } from '../../agent/runners/budget.ts'

// Failing checks that wait for a session, and why they wait.

/** What decides when a session starts, as configured now. */
export interface InvestigationSettings {
  /** Seconds from one session that looks into a check to the next one. */
  investigateCooldownS: () => number
  /** US dollars a day, in UTC; undefined for no limit. */
  dayBudget: () => number | undefined
}

/** How long further failures join the first one. */
export const GATHER_MS = 30_000
/** Checks that one session looks into. */
const MAX_TOGETHER = 1_000
const GATHERED = `what fails together is gathered for ${GATHER_MS / 1_000} s`

/** Checks whose failure waits for a session; those whose cooldown is over come first. */
export function listWaiting(
  db: Executor,
  { investigateCooldownS }: InvestigationSettings,
  now: Date,
  id: number | null = null,
): Promise<readonly WaitingCheck[]> {
  return q.listWaiting(db, { id, now, cooldown_s: investigateCooldownS(), limit: MAX_TOGETHER })
}

/** Those of them that a session may look into now; none while others may still join them. */
export function dueOf(waiting: readonly WaitingCheck[], now: Date): readonly WaitingCheck[] {
  const free = waiting.filter(({ cools_until }) => cools_until === null)
  const isGathered = free.some(({ told_at }) => {
    // A time after now is from before the clock was set back.
    return Math.abs(now.getTime() - told_at.getTime()) >= GATHER_MS
  })
  return isGathered ? free : []
}

/** Why no session may start now, whatever waits; undefined while one may. */
export async function obstacleToSession(
  db: Executor,
  { dayBudget }: InvestigationSettings,
  now: Date,
): Promise<string | undefined> {
  const paused = pauseProblem(await readPause(db), 'investigations')
  if (paused !== undefined) return paused
  const { running } = await sessionQueries.readSessionState(db, {})
  if (running) return 'a session runs'
  const day = dayBudget()
  if (day === undefined) return undefined
  const spent = { chain: 0, day: await spentToday(db, now) }
  return spentProblem({ session: undefined, day }, spent, 0)
}

/** A check that waits, and why. */
export interface Waits extends Pick<WaitingCheck, 'id' | 'service' | 'name'> {
  reason: string
}

/** What waits for a session. */
export async function readWaits(
  db: Executor,
  settings: InvestigationSettings,
  now: Date,
  id: number | null = null,
): Promise<readonly Waits[]> {
  const waiting = await listWaiting(db, settings, now, id)
  if (waiting.length === 0) return []
  const obstacle = await obstacleToSession(db, settings, now)
  return waiting.map((check) => {
    const { id, service, name, cools_until } = check
    const cooldown = cools_until && `its cooldown lasts until ${cools_until.toISOString()}`
    return { id, service, name, reason: cooldown ?? obstacle ?? GATHERED }
  })
}

/** What a check's page says of its sessions: its tier, the last one, and why the next one waits. */
export interface CheckInvestigation extends Investigation {
  reason: string | undefined
}

/** Reads it; throws 404. */
export async function findInvestigation(
  db: Executor,
  settings: InvestigationSettings,
  id: number,
  now: Date,
): Promise<CheckInvestigation> {
  const [investigation, [waits]] = await Promise.all([
    q.findInvestigation(db, { id }),
    readWaits(db, settings, now, id),
  ])
  return { ...found(investigation, 'check'), reason: waits?.reason }
}
