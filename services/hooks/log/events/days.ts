import { badRequest } from '../../../../kernel/fault.ts'
import { DAY_FORM, dayOf, hourOf, readDay, readZone, ZONE_FORM } from '../../../../kernel/days.ts'
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
  const place = zoneOf(zone)
  const today = dayOf(now, place)
  const first = when === 'days' ? fieldDay(from, 'from') : today
  const begun = when === 'yesterday' ? today.subtract({ days: 1 }) : first
  const last = when === 'days' ? fieldDay(to, 'to') : begun
  return {
    since: begun === undefined ? '' : hourOf(begun, place).toISOString(),
    until: last === undefined ? '' : hourOf(last.add({ days: 1 }), place).toISOString(),
  }
}

function zoneOf(text: string): string {
  const zone = readZone(text)
  if (zone === undefined) throw badRequest(`zone must be ${ZONE_FORM}.`, 'zone')
  return zone
}

/** The day in a field; undefined for an empty one. */
function fieldDay(text: string, name: 'from' | 'to'): Temporal.PlainDate | undefined {
  if (text === '') return undefined
  const day = readDay(text)
  if (day === undefined) throw badRequest(`${name} must be ${DAY_FORM}.`, name)
  return day
}
