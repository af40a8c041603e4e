import { badRequest } from '../../../kernel/fault.ts'
import type { LogQuery } from './filter.ts'

// The times that the log offers. Days are those of the viewer's time zone, which the page says.

/** What the menu offers; `days` are days of one's own. */
const TIMES = ['', '1h', '24h', 'today', 'yesterday', '7d', 'days'] as const
export type LogTime = (typeof TIMES)[number]

type Choice = Pick<LogQuery, 'when' | 'from' | 'to' | 'zone'>

/** The bounds of a choice of the menu; undefined for one without bounds. */
export function boundsOf(
  { when, from, to, zone }: Choice,
  now: Date,
): { since: string; until: string } | undefined {
  if (when === '') return undefined
  if (when === '1h' || when === '24h' || when === '7d') return { since: when, until: '' }
  if (!TIMES.some((time) => time === when)) {
    throw badRequest(`when must be one of ${TIMES.filter(Boolean).join(', ')}.`, 'when')
  }
  const today = Temporal.Instant.from(now.toISOString())
    .toZonedDateTimeISO(zoneOf(zone))
    .toPlainDate()
  const first = when === 'days' ? dayOf(from, 'from') : today
  const begun = when === 'yesterday' ? today.subtract({ days: 1 }) : first
  const last = when === 'days' ? dayOf(to, 'to') : begun
  return {
    since: begun === undefined ? '' : startOf(begun, zone),
    until: last === undefined ? '' : startOf(last.add({ days: 1 }), zone),
  }
}

function startOf(day: Temporal.PlainDate, zone: string): string {
  return new Date(day.toZonedDateTime(zoneOf(zone)).epochMilliseconds).toISOString()
}

/** A time zone such as Europe/Berlin; UTC without one. */
function zoneOf(zone: string): string {
  try {
    return new Intl.DateTimeFormat('en', {
      timeZone: zone === '' ? 'UTC' : zone,
    }).resolvedOptions().timeZone
  } catch {
    // RangeError: unknown.
    throw badRequest('zone must be a time zone such as Europe/Berlin.', 'zone')
  }
}

/** A day as a field of dates has it; undefined for an empty one. */
function dayOf(text: string, name: 'from' | 'to'): Temporal.PlainDate | undefined {
  if (text === '') return undefined
  const problem = `${name} must be a day such as 2026-01-31.`
  if (!/^[1-9]\d{3}-\d{2}-\d{2}$/.test(text)) throw badRequest(problem, name)
  try {
    return Temporal.PlainDate.from(text)
  } catch {
    // RangeError: a day such as 30 February.
    throw badRequest(problem, name)
  }
}
