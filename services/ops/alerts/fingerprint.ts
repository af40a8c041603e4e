import { createHash } from 'node:crypto'
import { redactLine, type Redact } from '../redact.ts'
import { memberAt, type Payload } from './payload.ts'

/** What an alert is called in the list, and what tells it from others. */
export interface Identity {
  readonly fingerprint: string
  /** The program that sent it, where its form tells; else null. */
  readonly source: string | null
  readonly title: string
}

const LONGEST = 200
/** Where senders put an id that stays the same for all deliveries of one alert. */
const IDS: readonly (readonly string[])[] = [
  ['fingerprint'],
  ['dedup_key'],
  ['incident_key'],
  ['alert_id'],
  ['alertId'],
  ['alert', 'alertId'],
  ['event', 'data', 'id'],
  ['incident', 'incident_id'],
  ['id'],
]
/** Where senders put what people read first. */
const TITLES: readonly (readonly (string | number)[])[] = [
  ['title'],
  ['commonAnnotations', 'summary'],
  ['alerts', 0, 'annotations', 'summary'],
  ['commonLabels', 'alertname'],
  ['alerts', 0, 'labels', 'alertname'],
  ['summary'],
  ['subject'],
  ['event', 'data', 'title'],
  ['monitor', 'name'],
  ['message'],
  ['msg'],
  ['text'],
  ['name'],
]
/** Dates and times, as they stand in bodies of any kind; in a form their signs are escaped. */
const TIMES = [
  /\d{4}-\d{2}-\d{2}(?:[T +]|%20)\d{2}(?::|%3A)\d{2}(?:(?::|%3A)\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|(?:[+-]|%2B)\d{2}(?::|%3A)?\d{2}))?/gi,
  /(?:(?:mon|tue|wed|thu|fri|sat|sun),? )?\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) \d{4}(?: \d{2}:\d{2}(?::\d{2})?)?/gi,
  /\b(?:(?:mon|tue|wed|thu|fri|sat|sun) )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +\d{1,2} \d{2}:\d{2}:\d{2}/gi,
  /(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/g,
  // A time of day begins a word, also behind an escaped sign: `host-1:40` and `fe80::10:40` are none.
  /(?:(?<![\w:.-])|(?<=%(?!3A)[\dA-F]{2}|\\[nrt]))(?:[01]?\d|2[0-3])(?::|%3A)[0-5]\d(?:(?::|%3A)[0-5]\d(?:[.,]\d+)?)?(?: ?[ap]m|Z)?(?![\w:])/gi,
  // Unix time from 2001 to 2065, in seconds to nanoseconds.
  /\b[12]\d{9}(?:\.\d+|(?:\d{3}){1,3})?\b/g,
]

/** Tells which alert a delivery is of, without secrets: deliveries with the same fingerprint stand together. */
export function identify(payload: Payload, redact: Redact): Identity {
  const { text, value } = payload
  return {
    fingerprint: redact(fingerprintOf(payload)),
    source: sourceOf(value),
    title: titleOf(text, value, redact),
  }
}

/** Alertmanager's or the sender's own id, else a hash of the body without its times. */
function fingerprintOf({ text, value }: Payload): string {
  const alerts = memberAt(value, 'alerts')
  const several = Array.isArray(alerts) && alerts.length > 1
  // Of a group that grows and shrinks, the key of the group is what stays.
  const own = several ? memberAt(value, 'groupKey') : memberAt(value, 'alerts', 0, 'fingerprint')
  const monitor = idText(memberAt(value, 'monitor', 'id'))
  const id =
    idText(own) ??
    (monitor === undefined ? undefined : `monitor:${monitor}`) ??
    IDS.map((path) => idText(memberAt(value, ...path))).find((found) => found !== undefined)
  if (id !== undefined) return id.length <= LONGEST ? id : hash(id)
  return hash(TIMES.reduce((rest, time) => rest.replaceAll(time, ''), text))
}

function sourceOf(value: unknown): string | null {
  if (Array.isArray(memberAt(value, 'alerts'))) {
    if (memberAt(value, 'orgId') !== undefined) return 'grafana'
    return memberAt(value, 'groupKey') === undefined ? null : 'alertmanager'
  }
  const kuma = ['heartbeat', 'monitor'].every((name) => memberAt(value, name) !== undefined)
  return kuma ? 'uptime-kuma' : null
}

function titleOf(text: string, value: unknown, redact: Redact): string {
  const said = TITLES.map((path) => memberAt(value, ...path))
  const found = said.find((part) => typeof part === 'string' && part.trim() !== '')
  const line = typeof found === 'string' ? found : text
  return redactLine(line, LONGEST, redact) || 'an alert without text'
}

function idText(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value)
  return typeof value === 'string' && value.trim() !== ''
    ? value.replaceAll('\0', '\u{FFFD}').toWellFormed()
    : undefined
}

function hash(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}
