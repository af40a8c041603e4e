import { auditQueries } from '../../../../db/audit.ts'
import type { Executor } from '../../../../db/client.ts'
import {
  investigationQueries as q,
  type LastPeriod,
  type LastResult,
  type WaitingCheck,
} from '../../../../db/ops/alerts/investigations.ts'
import { cutBytes } from '../../../../kernel/text.ts'
import { formatDuration, hoursBefore } from '../../../../kernel/time.ts'
import { readUptimes, UPTIME_DAYS, type Watched } from '../../watch/checks/history.ts'
import { redactLine, type Redact } from '../../redact.ts'

// Describes failing checks for a session. No model writes this text. It is fenced as data like any
// other alert (sessions/prompt.ts), because checked services wrote the messages in it.

/** The title and the text of the alert of failing checks. */
export interface Report {
  title: string
  text: string
}

const DAY_S = 86_400
const LATELY_H = 6
/** Rows of each kind of change. */
const MAX_LATELY = 10
/** Results and states of each check. */
const MAX_EACH = 5
/** How many checks have their history in the text; the others have their last message. */
const MAX_DETAILED = 20
/** Characters of a line without its time. */
const MAX_LINE = 300
/** Names in a title. */
const MAX_NAMED = 3
const MAX_TEXT_BYTES = 64 * 1024
const AUDIT_ROWS = 100
const LAST = Number.MAX_SAFE_INTEGER
/** Changes that do not explain why a service fails. Operations have lines of their own, with their outcome. */
const NO_CHANGE = [
  'session start',
  'session stop',
  'waiting seen',
  'notice acknowledge',
  'operation run',
]

/** Writes what is known of checks that fail, and of what changed lately. */
export async function reportOf(
  tx: Executor,
  checks: readonly WaitingCheck[],
  redact: Redact,
  now: Date,
): Promise<Report> {
  const line = (text: string) => redactLine(text, MAX_LINE, redact)
  const parts = [
    `${countOf(checks)} told as failing:`,
    ...checks.map((check) => {
      return `- ${line(`${nameOf(check)}: ${check.message}`)} (since ${check.since.toISOString()})`
    }),
    '',
    `What changed in the last ${LATELY_H} hours, newest first:`,
    ...(await changesBefore(tx, checks, line, now)),
    ...(await histories(tx, checks.slice(0, MAX_DETAILED), line, now)),
    checks.length > MAX_DETAILED && `\n(The first ${MAX_DETAILED} of ${checks.length} checks.)`,
  ].filter((part) => part !== false)
  const text = cutBytes(redact(parts.join('\n')), MAX_TEXT_BYTES)
  return { title: titleOf(checks, line), text }
}

type Line = (text: string) => string

function nameOf({ service, name }: Pick<WaitingCheck, 'service' | 'name'>): string {
  return `${service}/${name}`
}

function countOf({ length }: readonly WaitingCheck[]): string {
  return length === 1 ? '1 check is' : `${length} checks are`
}

function titleOf(checks: readonly WaitingCheck[], line: Line): string {
  const [first] = checks
  if (checks.length === 1 && first !== undefined) {
    return line(`${nameOf(first)} fails: ${first.message}`)
  }
  const more = checks.length - MAX_NAMED
  const named = checks.slice(0, MAX_NAMED).map(nameOf).join(', ')
  return line(`${checks.length} checks fail: ${named}${more > 0 ? ` and ${more} more` : ''}`)
}

/** Operations, changes of settings and states of other checks. */
async function changesBefore(
  tx: Executor,
  checks: readonly WaitingCheck[],
  line: Line,
  now: Date,
): Promise<readonly string[]> {
  const since = hoursBefore(now, LATELY_H)
  const ids = checks.map(({ id }) => id)
  const limit = MAX_LATELY
  const actions = await q.listLastActions(tx, { since, limit })
  const asked = { before: LAST, service: null, since, limit: AUDIT_ROWS }
  const noted = await auditQueries.listChanges(tx, asked)
  const settings = noted.filter(({ service, action }) => {
    return service !== 'links' && !NO_CHANGE.includes(action)
  })
  const others = await q.listOtherChanges(tx, { since, ids, limit })
  const all = [
    ...actions.map(({ at, service, operation, outcome }) => {
      const what = `operation ${operation} of ${service}: ${outcome ?? 'not ended yet'}`
      return [at, what] as const
    }),
    ...settings.slice(0, MAX_LATELY).map(({ at, actor, action, service, subject }) => {
      return [at, `${actor}: ${service}: ${action} ${subject}`] as const
    }),
    ...others.map((other) => {
      const { began_at, state, message } = other
      return [began_at, `check ${nameOf(other)} became ${state}: ${message}`] as const
    }),
  ]
  if (all.length === 0) return ['- nothing that Gatehouse knows of']
  return all
    .toSorted(([a], [b]) => b.getTime() - a.getTime())
    .map(([at, what]) => `- ${at.toISOString()} ${line(what)}`)
}

async function histories(
  tx: Executor,
  checks: readonly WaitingCheck[],
  line: Line,
  now: Date,
): Promise<readonly string[]> {
  const ids = checks.map(({ id }) => id)
  const asked = { ids, each: MAX_EACH, limit: MAX_EACH * checks.length }
  const results = Map.groupBy(await q.listLastResults(tx, asked), ({ check_id }) => check_id)
  const periods = Map.groupBy(await q.listLastPeriods(tx, asked), ({ check_id }) => check_id)
  const uptimes = await readUptimes(tx, ids, now)
  return checks.flatMap((check) => [
    '',
    `${line(nameOf(check))}: ${check.type}, every ${formatDuration(check.every_s)}`,
    `Up: ${uptimeText(uptimes.get(check.id))}`,
    'Last results:',
    ...(results.get(check.id) ?? []).map((result) => resultLine(result, line)),
    'Its states:',
    ...(periods.get(check.id) ?? []).map((period) => periodLine(period, line)),
  ])
}

function uptimeText(known: Watched | undefined): string {
  const parts = UPTIME_DAYS.map((days) => {
    const up = known?.uptime[days] ?? null
    if (up === null) return `${days} d not watched`
    const watched_s = Math.round((known?.watchedMs ?? 0) / 1_000)
    const of = watched_s < days * DAY_S ? ` of ${formatDuration(watched_s)}` : ''
    return `${days} d ${(up * 100).toFixed(2)} %${of}`
  })
  return parts.join(', ')
}

function resultLine({ at, state, ms, message }: LastResult, line: Line): string {
  return `- ${at.toISOString()} ${state} (${ms} ms): ${line(message)}`
}

function periodLine({ state, began_at, ended_at, message }: LastPeriod, line: Line): string {
  const end = ended_at === null ? 'now' : ended_at.toISOString()
  return `- ${state} from ${began_at.toISOString()} to ${end}: ${line(message)}`
}
