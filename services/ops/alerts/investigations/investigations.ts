import type { Database, Executor } from '../../../../db/client.ts'
import { alertQueries } from '../../../../db/ops/alerts/alerts.ts'
import {
  investigationQueries as q,
  type WaitingCheck,
} from '../../../../db/ops/alerts/investigations.ts'
import type { Log } from '../../../../kernel/log.ts'
import { repeat, reportsTo, type Repeat } from '../../../../kernel/repeat.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { beginningOf } from '../alerts/brief.ts'
import { digest } from '../alerts/fingerprint.ts'
import type { Redaction } from '../../redact.ts'
import type { FoundRequest, Sessions } from '../../agent/sessions/sessions.ts'
import { reportOf } from './report.ts'
import { dueOf, listWaiting, obstacleToSession, type InvestigationSettings } from './waiting.ts'

// Checks that are marked `investigate`: what fails starts a session (decisions.md section 7).

export interface InvestigationsOptions extends InvestigationSettings {
  db: Database
  clock: Clock
  log: Log
  redact: Redaction
  sessions: Pick<Sessions, 'startFound'>
}

const ROUND_MS = 5_000
/** Characters of the names of checks in a fingerprint; an index bounds it. */
const MAX_NAMES = 200
/** The source of alerts that no sender delivered. */
const SOURCE = 'gatehouse'

/**
 * Looks every few seconds for checks that fail and wait for a session. What waits stands in the
 * database alone: any instance may start the session, and a restart loses nothing.
 */
export function startInvestigations(options: InvestigationsOptions): Repeat {
  const { clock, log } = options
  const reports = reportsTo(
    log,
    'failing checks not looked into',
    'failing checks are looked into again',
  )
  return repeat(clock, ROUND_MS, 'investigations', () => round(options), reports)
}

async function round(options: InvestigationsOptions): Promise<void> {
  const { db, clock, sessions } = options
  const now = clock.now()
  await q.resolveAlerts(db, { now })
  const due = dueOf(await listWaiting(db, options, now), now)
  if (due.length === 0) return
  if ((await obstacleToSession(db, options, now)) !== undefined) return
  await sessions.startFound((tx) => claim(tx, options, now))
}

/**
 * One session for all that is due, through an alert of its own. The caller holds the lock of
 * starts: of two instances one finds it.
 */
async function claim(
  tx: Executor,
  options: InvestigationsOptions,
  now: Date,
): Promise<FoundRequest | undefined> {
  if ((await obstacleToSession(tx, options, now)) !== undefined) return undefined
  const due = dueOf(await listWaiting(tx, options, now), now)
  if (due.length === 0) return undefined
  const { title, text } = await reportOf(tx, due, options.redact, now)
  const tier = Math.max(...due.map((check) => check.tier))
  const fingerprint = fingerprintOf(due)
  const { id: alert } = await alertQueries.saveAlert(tx, {
    fingerprint,
    source: SOURCE,
    title,
    payload: text,
    now,
    service: serviceOf(due),
    labels: labelsOf(due),
    state: 'firing',
    firing_since: firstFailure(due),
    resolved_at: null,
    // The texts of an alert differ in times and figures: the newest is kept.
    content: digest(fingerprint),
  })
  // Until its session has begun.
  await alertQueries.setOutcome(tx, {
    id: alert,
    outcome: 'acknowledged',
    tier,
    holder: '',
    machine: '',
    waiting_since: null,
    due_at: null,
    silence: null,
  })
  const checks = due.map(({ id, event_id }) => ({ id, event_id }))
  return {
    tier,
    trigger: 'alert',
    prompt: beginningOf(text),
    alert,
    note: (session) => q.saveInvestigations(tx, { checks, now, session }),
  }
}

/** What a silence can name: no message of a check is among it. */
function labelsOf(checks: readonly WaitingCheck[]) {
  const service = serviceOf(checks)
  const names = shorten(checks.map(({ name }) => name))
  return { alertname: names, check: names, ...(service !== null && { service }) }
}

function firstFailure(checks: readonly WaitingCheck[]): Date {
  return new Date(Math.min(...checks.map(({ since }) => since.getTime())))
}

function shorten(names: readonly string[]): string {
  const all = names.toSorted().join(', ')
  return all.length <= MAX_NAMES ? all : `${all.slice(0, MAX_NAMES - 1).toWellFormed()}…`
}

/** The service of all of them; null if they are of several. */
function serviceOf(checks: readonly WaitingCheck[]): string | null {
  const [service = null, ...others] = new Set(checks.map((check) => check.service))
  return others.length === 0 ? service : null
}

/** The same for the same checks, whenever they fail. */
function fingerprintOf(checks: readonly WaitingCheck[]): string {
  const names = checks.map(({ service, name }) => `${service}/${name}`).toSorted()
  const all = names.join(', ')
  return `check:${all.length <= MAX_NAMES ? all : digest(JSON.stringify(names))}`
}
