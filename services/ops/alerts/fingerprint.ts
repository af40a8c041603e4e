import { createHash } from 'node:crypto'
import { redactLine, type Redact } from '../redact.ts'
import { memberAt, type Payload } from './payload.ts'

/** What an alert is called in the list, and what tells it from others. */
export interface Identity {
  readonly fingerprint: string
  /** Hash of the text without its times: what tells the texts of one alert from each other. */
  readonly content: string
  /** The program that sent it, where its form tells; else null. */
  readonly source: string | null
  readonly title: string
}

const LONGEST = 200
const COUNTER = /^\s*\d{1,15}\s*$/
/** Where senders put a key that stays the same for all deliveries of one alert. */
const KEYS: readonly (readonly string[])[] = [
  ['fingerprint'],
  ['dedup_key'],
  ['incident_key'],
  ['alert_id'],
  ['alertId'],
  ['alert', 'alertId'],
  ['event', 'data', 'incident', 'id'],
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
  const content = hash(TIMES.reduce((rest, time) => rest.replaceAll(time, ''), text))
  const [source, key] = [sourceOf(value), keyOf(value)]
  return {
    fingerprint: key === undefined ? content : redact(key.length <= LONGEST ? key : hash(key)),
    content,
    source,
    title: titleOf(text, value, redact),
  }
}

/** The sender's own key for all deliveries of one alert; undefined where it has none. */
function keyOf(value: unknown): string | undefined {
  const alerts = memberAt(value, 'alerts')
  const isOne = Array.isArray(alerts) && alerts.length === 1
  // Alertmanager's group grows and shrinks, and its key stays. Grafana's group may be of many rules.
  const group = memberAt(value, 'groupKey')
  const own = isOne ? memberAt(value, 'alerts', 0, 'fingerprint') : undefined
  const keys = [
    ...(sourceOf(value) === 'grafana' ? [own, group] : [group, own]),
    monitorKey(memberAt(value, 'monitor', 'id'), memberAt(value, 'monitor', 'name')),
    ...KEYS.map((path) => memberAt(value, ...path)),
  ]
  return keys.map(stableKey).find((key) => key !== undefined)
}

/** Uptime Kuma numbers its monitors from 1: the name tells two installations apart. */
function monitorKey(id: unknown, name: unknown): string | undefined {
  const isKnown = typeof id === 'number' && typeof name === 'string' && name.trim() !== ''
  return isKnown ? `monitor:${id}:${name}` : undefined
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

/** A number alone is no key: other senders count from 1 as well. */
function stableKey(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '' || COUNTER.test(value)) return undefined
  return value.replaceAll('\0', '\u{FFFD}').toWellFormed()
}

function hash(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}
