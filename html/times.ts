import { html, type Html } from '../kernel/html.ts'
import { hiddenField } from './form.ts'

// Instants and days in UTC, of which the browser's script (`times.js`) makes those of the reader's
// time zone. `timeTag` of the parts is for instants that stand by themselves.

/** An instant to the minute in a label of a chart, which the script tells in the reader's zone. */
export function instantText(at: Date): string {
  return `${at.toISOString().slice(0, 16).replace('T', ' ')} UTC`
}

/** A day in such a label. It stays one of UTC: what is counted by day is kept so. */
export function dayText(day: string): string {
  return `${day} (UTC)`
}

/**
 * The time zone of the days that a filter offers by its list `when`: it is said beside them, and
 * sent along. The script makes it the reader's where the choice depends on it; empty is UTC.
 */
export function zoneField(zone: string): Html {
  return html`<span class="zone muted">${zone || 'UTC'}</span> ${hiddenField('zone', zone)}`
}
