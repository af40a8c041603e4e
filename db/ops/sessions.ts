import type { Executor } from '../client.ts'
import { many, one, optional } from '../rows.ts'
import { opsQueries as q } from './queries.ts'
import type {
  Ending,
  FoundSession,
  Lease,
  Line,
  NewSession,
  Session,
  Started,
  Status,
} from './rows.ts'

/** The session that begins, or undefined while another one runs. */
export async function startSession(
  tx: Executor,
  session: NewSession,
): Promise<Started | undefined> {
  await tx.run(q.lockStarts, [])
  const { tier, model, trigger, prompt_text, started_at, parent_session_id } = session
  const asked = [tier, model, trigger, prompt_text, started_at, parent_session_id]
  return optional(tx, q.startSession, [...asked, session.holder, session.machine])
}

/** Renews a lease, and says whether the session is asked to stop; undefined when it is lost. */
export function renewLease(
  db: Executor,
  id: number,
  holder: string,
  at: Date,
): Promise<{ readonly stop_asked: boolean } | undefined> {
  return optional(db, q.renewLease, [id, holder, at])
}

/** False when the session has ended already. */
export async function finishSession(
  tx: Executor,
  id: number,
  holder: string,
  { status, exit_code, cost_usd, num_turns, summary }: Ending,
  at: Date,
): Promise<boolean> {
  const ending = [status, at, exit_code, cost_usd, num_turns, summary]
  return (await optional(tx, q.finishSession, [id, holder, ...ending])) !== undefined
}

/** False when no such session runs. */
export async function askToStop(tx: Executor, id: number): Promise<boolean> {
  return (await optional(tx, q.askToStop, [id])) !== undefined
}

/** Who runs the session that runs. */
export function findLease(db: Executor): Promise<Lease | undefined> {
  return optional(db, q.findLease, [])
}

/** Fails a session whose lease was renewed last at `since`; false when it was since, or has ended. */
export async function failLapsed(
  tx: Executor,
  id: number,
  since: Date,
  at: Date,
): Promise<boolean> {
  return (await optional(tx, q.failLapsed, [id, since, at])) !== undefined
}

/** Has every instance look at the sessions, once the transaction commits. */
export async function announceSessions(tx: Executor): Promise<void> {
  await tx.run(q.announceSessions, [])
}

/** The newest session's id, 0 before the first one, and whether one runs, on any instance. */
export function lookAtSessions(
  db: Executor,
): Promise<{ readonly newest: number; readonly running: boolean }> {
  return one(db, q.lookAtSessions, [])
}

export function findRunning(db: Executor): Promise<Session | undefined> {
  return optional(db, q.findRunning, [])
}

export function findSession(db: Executor, id: number): Promise<FoundSession | undefined> {
  return optional(db, q.findSession, [id])
}

/** Sessions, newest first. */
export function listSessions(
  db: Executor,
  offset: number,
  limit: number,
): Promise<readonly Session[]> {
  return many(db, q.listSessions, [offset, limit])
}

/** The sessions that one escalated to. */
export function listChildren(db: Executor, id: number): Promise<readonly Session[]> {
  return many(db, q.listChildren, [id, 100])
}

/** What all sessions and briefs of alerts since the beginning of a day have cost, in US dollars. */
export async function costSince(db: Executor, since: Date): Promise<number> {
  return (await one<{ readonly cost_usd: number }>(db, q.costSince, [since])).cost_usd
}

/** What the escalation chain of a session has cost, in US dollars. */
export async function chainCost(db: Executor, id: number): Promise<number> {
  return (await one<{ readonly cost_usd: number }>(db, q.chainCost, [id])).cost_usd
}

/** Stores lines of a session and tells whoever follows it. */
export async function saveLines(
  db: Executor,
  session: number,
  lines: readonly Line[],
): Promise<void> {
  await db.run(q.saveLines, [session, lines])
}

/** The lines of a session after one, in order. */
export function listLines(
  db: Executor,
  session: number,
  after: number,
  limit: number,
): Promise<readonly Line[]> {
  return many(db, q.listLines, [session, after, limit])
}

/** Where a session stands; undefined when there is none. */
export async function findStatus(db: Executor, id: number): Promise<Status | undefined> {
  return (await optional<{ readonly status: Status }>(db, q.findStatus, [id]))?.status
}

/** The lines of a session before one, in order; as many as the limit says, nearest to it. */
export async function listLinesBefore(
  db: Executor,
  session: number,
  before: number,
  limit: number,
): Promise<readonly Line[]> {
  const lines = await many<Line>(db, q.listLinesBefore, [session, before, limit])
  return lines.toReversed()
}

/** The escalation chain of a session, from its first one on. */
export function listChain(db: Executor, id: number): Promise<readonly Session[]> {
  return many(db, q.listChain, [id, 100])
}
