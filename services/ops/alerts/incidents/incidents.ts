import type { Executor } from '../../../../db/client.ts'
import type { Alert } from '../../../../db/ops/alerts/alerts.ts'
import { incidentQueries as q } from '../../../../db/ops/alerts/incidents.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { listNotes } from './notes.ts'

// An incident is a firing of an alert, from its beginning to its end, with what was found and done.

/** Sessions of an alert that are read. */
export const MAX_SESSIONS = 100
/** How many sessions are read, and how many characters of each summary. */
const SUMMARIES = { limit: 5, characters: 10_500 }
const MAX_CHECKS = 30
const CHANGES = { each: 20, limit: 50 }
/** Events, operations and memories, each. */
const MAX_ROWS = 50
/** A check fails before its alert comes, and is well again before the end comes. */
const AROUND_MS = 15 * 60_000

export type Incident = Awaited<ReturnType<typeof readIncident>>

/** What is known of the newest firing of an alert. */
export async function readIncident(db: Executor, alert: Alert, now: Date) {
  const { id, firing_since: began, resolved_at: ended } = alert
  const listed = { alert: id, before: null }
  const [all, summaries, checks, notes] = await Promise.all([
    sessionQueries.listAlertSessions(db, { ...listed, characters: 0, limit: MAX_SESSIONS }),
    sessionQueries.listAlertSessions(db, { ...listed, ...SUMMARIES }),
    q.listIncidentChecks(db, { alert: id, service: alert.service, limit: MAX_CHECKS }),
    listNotes(db, id),
  ])
  const isOwn = ({ started_at }: { started_at: Date }): boolean => started_at >= began
  const sessions = all.filter(isOwn)
  const own = { sessions: sessions.map((session) => session.id), limit: MAX_ROWS }
  const [changes, events, operations, memories] = await Promise.all([
    q.listIncidentChanges(db, {
      checks: checks.map((check) => check.id),
      since: new Date(began.getTime() - AROUND_MS),
      until: ended === null ? now : new Date(ended.getTime() + AROUND_MS),
      ...CHANGES,
    }),
    q.listIncidentEvents(db, own),
    q.listIncidentOperations(db, own),
    q.listIncidentMemories(db, own),
  ])
  const shown = summaries.map((session) => session.id)
  return {
    duration: (ended ?? now).getTime() - began.getTime(),
    /** US dollars; null where no session has a price. */
    cost: sumOf(sessions.map(({ cost_usd }) => cost_usd)),
    sessions,
    /** The newest of them, with their summaries. */
    found: summaries.filter(isOwn),
    /** The newest sessions of earlier firings, with their summaries. */
    before: summaries.filter((session) => !isOwn(session)),
    /** Further sessions of earlier firings. */
    earlier: all.filter((session) => !isOwn(session) && !shown.includes(session.id)),
    checks,
    changes,
    events,
    operations,
    memories,
    notes,
  }
}

function sumOf(costs: readonly (number | null)[]): number | null {
  const known = costs.filter((cost) => cost !== null)
  return known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0)
}
