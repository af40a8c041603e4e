import { hash } from 'node:crypto'
import { isObject, parseJson, stringOf, type JsonObject } from '../../../kernel/json.ts'
import { readInstant } from '../../../kernel/time.ts'
import { redactLine, type Redact } from '../redact.ts'

/**
 * The body of a delivery: its text without the tier, which is what the model gets; its JSON value,
 * undefined if it is not JSON; the requested tier, which may be over the maximum.
 */
export type Payload = ReturnType<typeof readPayload>

const FIRST_TIER = 1
const LAST_TIER = 3

/**
 * Reads a body of any kind. Invalid UTF-8 becomes U+FFFD. The top-level `tier` of a JSON object is
 * always removed, and counts only if it is an integer of at least 1.
 */
export function readPayload(bytes: Uint8Array) {
  // PostgreSQL stores no NUL.
  const text = new TextDecoder().decode(bytes).replaceAll('\0', '\u{FFFD}')
  const value = parseJson(text)
  if (!isObject(value) || !('tier' in value)) return { text, value, tier: FIRST_TIER }
  const { tier: asked, ...rest } = value
  const isTier = typeof asked === 'number' && Number.isInteger(asked) && asked >= FIRST_TIER
  const tier = isTier ? Math.min(asked, LAST_TIER) : FIRST_TIER
  return { text: toText(rest), value: rest, tier }
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
    here = Reflect.get(here, name)
  }
  return here
}

const MAX_LENGTH = 200
const COUNTER = /^\s*\d{1,15}\s*$/
/** Paths of keys that stay the same for all deliveries of one alert. */
const KEYS = [
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
const TITLES = [
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
// Parts of times; in a form their punctuation is escaped.
const DAY = '(?:mon|tue|wed|thu|fri|sat|sun)'
const MONTH = '(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)'
const COLON = '(?::|%3A)'
const FRACTION = '(?:[.,]\\d+)?'
const CLOCK = `\\d{2}${COLON}\\d{2}(?:${COLON}\\d{2}${FRACTION})?`
const ZONE = `(?: ?(?:Z|(?:[+-]|%2B)\\d{2}${COLON}?\\d{2}))?`
const TIME_OF_DAY = `(?:[01]?\\d|2[0-3])${COLON}[0-5]\\d(?:${COLON}[0-5]\\d${FRACTION})?`
/** A time of day begins a word, also after an escaped character: not as in `host-1:40`. */
const WORD_START = '(?:(?<![\\w:.-])|(?<=%(?!3A)[\\dA-F]{2}|\\\\[nrt]))'

/** Dates and times in bodies of any kind. */
const TIMES = [
  new RegExp(`\\d{4}-\\d{2}-\\d{2}(?:[T +]|%20)${CLOCK}${ZONE}`, 'gi'),
  new RegExp(`(?:${DAY},? )?\\d{1,2} ${MONTH} \\d{4}(?: \\d{2}:\\d{2}(?::\\d{2})?)?`, 'gi'),
  new RegExp(`\\b(?:${DAY} )?${MONTH} +\\d{1,2} \\d{2}:\\d{2}:\\d{2}`, 'gi'),
  /(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)/g,
  new RegExp(`${WORD_START}${TIME_OF_DAY}(?: ?[ap]m|Z)?(?![\\w:])`, 'gi'),
  // Unix time from 2001 to 2065, in seconds to nanoseconds.
  /\b[12]\d{9}(?:\.\d+|(?:\d{3}){1,3})?\b/g,
]

/**
 * Identifies the alert of a delivery, without secrets: deliveries with the same fingerprint belong
 * together. `content` is a hash of the text without its times: deliveries with the same one have
 * the same text. `source` is the program that sent it; null if unknown.
 */
export function identify({ text, value }: Payload, redact: Redact) {
  const content = digest(TIMES.reduce((rest, time) => rest.replaceAll(time, ''), text))
  const key = keyOf(value)
  const own = key && redact(key.length <= MAX_LENGTH ? key : digest(key))
  return {
    fingerprint: own ?? content,
    content,
    source: sourceOf(value),
    title: titleOf(text, value, redact),
  }
}

/** What a delivery says of its alert. */
export interface ReadAlert {
  status: 'firing' | 'resolved'
  fingerprint: string
  /** Hash of the text without its times. */
  content: string
  source: string | null
  title: string
  service: string | null
  labels: Readonly<Record<string, string>>
  startsAt: Date | null
  endsAt: Date | null
}

/** Reads a delivery: a group of Alertmanager is one alert, and any other body fires. */
export function readAlert(payload: Payload, redact: Redact): ReadAlert {
  const { value } = payload
  const isResolved = memberAt(value, 'status') === 'resolved'
  const given = memberAt(value, 'commonLabels') ?? memberAt(value, 'labels') ?? {}
  const texts = Object.entries(given).filter(([, text]) => typeof text === 'string')
  const labels = Object.fromEntries(texts.slice(0, 50).map((pair) => pair.map(cleaned)))
  const service = stringOf(memberAt(value, 'service'))
  return {
    ...identify(payload, redact),
    status: isResolved ? 'resolved' : 'firing',
    labels,
    service: service === undefined ? (labels['service'] ?? null) : cleaned(service),
    startsAt: readInstant(memberAt(value, 'alerts', 0, 'startsAt')) ?? null,
    endsAt: isResolved ? (readInstant(memberAt(value, 'alerts', 0, 'endsAt')) ?? null) : null,
  }

  function cleaned(text: unknown): string {
    return redactLine(String(text), MAX_LENGTH, redact)
  }
}

/** The sender's key of the alert, if it has one. */
function keyOf(value: unknown) {
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
function monitorKey(id: unknown, name: unknown) {
  const isKnown = typeof id === 'number' && typeof name === 'string' && name.trim() !== ''
  return isKnown ? `monitor:${id}:${name}` : undefined
}

function sourceOf(value: unknown) {
  if (Array.isArray(memberAt(value, 'alerts'))) {
    if (memberAt(value, 'orgId') !== undefined) return 'grafana'
    return memberAt(value, 'groupKey') === undefined ? null : 'alertmanager'
  }
  const kuma = ['heartbeat', 'monitor'].every((name) => memberAt(value, name) !== undefined)
  return kuma ? 'uptime-kuma' : null
}

function titleOf(text: string, value: unknown, redact: Redact): string {
  const said = TITLES.map((path) => stringOf(memberAt(value, ...path)))
  const line = said.find((part) => part?.trim()) ?? text
  const title = redactLine(line, MAX_LENGTH + 1, redact)
  if (title.length > MAX_LENGTH) return `${title.slice(0, MAX_LENGTH - 1).toWellFormed()}…`
  return title || 'an alert without text'
}

/** A number alone is not a key: other senders count from 1, too. */
function stableKey(value: unknown) {
  if (typeof value !== 'string' || value.trim() === '' || COUNTER.test(value)) return undefined
  return value.replaceAll('\0', '\u{FFFD}').toWellFormed()
}

function digest(text: string): string {
  return `sha256:${hash('sha256', text)}`
}
