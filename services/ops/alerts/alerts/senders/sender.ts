import { isObject, stringOf, type JsonObject } from '../../../../../kernel/json.ts'

export type AlertStatus = 'firing' | 'resolved'

/** The body of a delivery. `value` is its JSON; undefined if it is not JSON. */
export interface Body {
  text: string
  value: unknown
}

/** A label as it stands in the body: values other than text, numbers and booleans do not count. */
export type FoundLabel = readonly [name: string, value: unknown]

/** What a sender says of one alert, as it stands in the body: neither bounded nor redacted. */
export interface FoundMember {
  status: AlertStatus
  /** The sender's own key of the alert. Undefined where it has none: its text identifies it. */
  key: string | undefined
  title: string | undefined
  /** Of two with one name the first counts. */
  labels: readonly FoundLabel[]
  startsAt: Date | null
  endsAt: Date | null
}

/** What a sender says of a delivery. A group has the alerts that it groups as its `members`. */
export interface FoundAlert extends FoundMember {
  /** The program that sent it; null if unknown. */
  source: string | null
  members: readonly FoundMember[]
}

const TIME =
  /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?) ?(Z|[+-]\d{2}:?\d{2})?$/

/**
 * A time as senders write it; without a zone it is UTC. Null for any other text, for a time that
 * does not exist, and for the year 1, which Alertmanager writes in place of no time.
 */
export function timeOf(value: unknown): Date | null {
  const found = TIME.exec(stringOf(value) ?? '')
  if (found === null) return null
  const [, day, clock, zone = 'Z'] = found
  const time = new Date(`${day}T${clock}${zone}`)
  return time.getTime() > 0 ? time : null
}

/** The times of an alert whose sender only says when its status changed. */
export function changedAt(status: AlertStatus, time: unknown) {
  const at = timeOf(time)
  return { startsAt: status === 'firing' ? at : null, endsAt: status === 'resolved' ? at : null }
}

const COUNTER = /^\s*\d{1,15}\s*$/

/** A key that tells alerts apart. A number alone is none: other senders count from 1, too. */
export function keyOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '' || COUNTER.test(value)) return undefined
  return value
}

/** A text that says something; undefined for any other value. */
export function textOf(value: unknown): string | undefined {
  return stringOf(value)?.trim() ? stringOf(value) : undefined
}

/** The members of an object as labels; none for any other value. */
export function labelsOf(value: unknown): readonly FoundLabel[] {
  return isObject(value) ? Object.entries(value) : []
}

/** A tag or a dimension as a label. */
export function toLabel({ name, value }: JsonObject): FoundLabel {
  return [stringOf(name) ?? '', value]
}
