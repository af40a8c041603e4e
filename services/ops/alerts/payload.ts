import { createHash } from 'node:crypto'
import { isObject, parseJson, type JsonObject } from '../../../kernel/json.ts'
import { redactLine, type Redact } from '../redact.ts'

/** The body of a delivery. */
export interface Payload {
  /** What the model gets: the body without the tier. */
  readonly text: string
  /** The JSON value; undefined if the body is not JSON. */
  readonly value: unknown
  /** The requested tier, which may be over the maximum. */
  readonly tier: number
}

const FIRST_TIER = 1
const LAST_TIER = 3

/**
 * Reads a body of any kind. Invalid UTF-8 becomes U+FFFD. The top-level `tier` of a JSON object is
 * always removed, and counts only if it is an integer of at least 1.
 */
export function readPayload(bytes: Uint8Array): Payload {
  // PostgreSQL stores no NUL.
  const text = new TextDecoder().decode(bytes).replaceAll('\0', '\u{FFFD}')
  const value = parseJson(text)
  if (!isObject(value) || !('tier' in value)) return { text, value, tier: FIRST_TIER }
  const { tier, ...rest } = value
  const asks = typeof tier === 'number' && Number.isInteger(tier) && tier >= FIRST_TIER
  return { text: toText(rest), value: rest, tier: asks ? Math.min(tier, LAST_TIER) : FIRST_TIER }
}

/** A JSON object as text, with a note in place of a member that is nested too deep. */
function toText(members: JsonObject): string {
  const parts = Object.entries(members).map(([name, value]) => {
    try {
      return `${JSON.stringify(name)}:${JSON.stringify(value)}`
    } catch {
      // RangeError: JSON.stringify recurses, JSON.parse does not.
      return `${JSON.stringify(name)}:"(nested too deep to be shown)"`
    }
  })
  return `{${parts.join(',')}}`.replaceAll('\0', '\u{FFFD}')
}

/** The member of a JSON object at a path of names and places in lists. */
function memberAt(value: unknown, ...path: readonly (string | number)[]): unknown {
  let here = value
  for (const name of path) {
    if (typeof here !== 'object' || here === null || !Object.hasOwn(here, name)) return undefined
    here = (here as Readonly<Record<string | number, unknown>>)[name]
  }
  return here
}

/** What an alert is called in the list, and how it differs from others. */
export interface Identity {
  readonly fingerprint: string
  /** Hash of the text without its times: deliveries with the same one have the same text. */
  readonly content: string
  /** The program that sent it; null if unknown. */
  readonly source: string | null
  readonly title: string
}

const MAX_LENGTH = 200
const COUNTER = /^\s*\d{1,15}\s*$/
/** Paths of keys that stay the same for all deliveries of one alert. */
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
/** Paths of titles. */
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
/** Dates and times in bodies of any kind; in a form their punctuation is escaped. */
const TIMES = [
  /\d{4}-\d{2}-\d{2}(?:[T +]|%20)\d{2}(?::|%3A)\d{2}(?:(?::|%3A)\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|(?:[+-]|%2B)\d{2}(?::|%3A)?\d{2}))?/gi,
  /(?:(?:mon|tue|wed|thu|fri|sat|sun),? )?\d{1,2} (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) \d{4}(?: \d{2}:\d{2}(?::\d{2})?)?/gi,
  /\b(?:(?:mon|tue|wed|thu|fri|sat|sun) )?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec) +\d{1,2} \d{2}:\d{2}:\d{2}/gi,
  /(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/g,
  // A time of day begins a word, also after an escaped character: `host-1:40` and `fe80::10:40` are
  // not times.
  /(?:(?<![\w:.-])|(?<=%(?!3A)[\dA-F]{2}|\\[nrt]))(?:[01]?\d|2[0-3])(?::|%3A)[0-5]\d(?:(?::|%3A)[0-5]\d(?:[.,]\d+)?)?(?: ?[ap]m|Z)?(?![\w:])/gi,
  // Unix time from 2001 to 2065, in seconds to nanoseconds.
  /\b[12]\d{9}(?:\.\d+|(?:\d{3}){1,3})?\b/g,
]

/**
 * Identifies the alert of a delivery, without secrets: deliveries with the same fingerprint belong
 * together.
 */
export function identify(payload: Payload, redact: Redact): Identity {
  const { text, value } = payload
  const content = hash(TIMES.reduce((rest, time) => rest.replaceAll(time, ''), text))
  const [source, key] = [sourceOf(value), keyOf(value)]
  return {
    fingerprint: key === undefined ? content : redact(key.length <= MAX_LENGTH ? key : hash(key)),
    content,
    source,
    title: titleOf(text, value, redact),
  }
}

/** The sender's key of the alert, if it has one. */
function keyOf(value: unknown): string | undefined {
  const alerts = memberAt(value, 'alerts')
  const isOne = Array.isArray(alerts) && alerts.length === 1
  // Alertmanager's group changes members but keeps its key. Grafana's group may have many rules.
  const group = memberAt(value, 'groupKey')
  const own = isOne ? memberAt(value, 'alerts', 0, 'fingerprint') : undefined
  const keys = [
    ...(sourceOf(value) === 'grafana' ? [own, group] : [group, own]),
    monitorKey(memberAt(value, 'monitor', 'id'), memberAt(value, 'monitor', 'name')),
    ...KEYS.map((path) => memberAt(value, ...path)),
  ]
  return keys.map(stableKey).find((key) => key !== undefined)
}

/** Uptime Kuma numbers its monitors from 1; the name distinguishes two installations. */
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
  return redactLine(line, MAX_LENGTH, redact) || 'an alert without text'
}

/** A number alone is not a key: other senders count from 1, too. */
function stableKey(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.trim() === '' || COUNTER.test(value)) return undefined
  return value.replaceAll('\0', '\u{FFFD}').toWellFormed()
}

function hash(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`
}
