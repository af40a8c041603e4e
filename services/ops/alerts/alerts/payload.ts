import { isObject, parseJson, type JsonObject } from '../../../../kernel/json.ts'
import { firstFields } from '../../../../kernel/http/read-body.ts'
import { cutBytes } from '../../../../kernel/text.ts'
import { redactLine, type Redact } from '../../redact.ts'
import { contentOf, fingerprintOf } from './fingerprint.ts'
import { readAlertmanager } from './senders/alertmanager.ts'
import { openEnvelope, readCloudWatch, readSubscription } from './senders/amazon.ts'
import { readPlain } from './senders/plain.ts'
import type { AlertStatus, Body, FoundAlert, FoundLabel, FoundMember } from './senders/sender.ts'
import { readSentry } from './senders/sentry.ts'
import { readUptimeKuma } from './senders/uptime-kuma.ts'

/**
 * The body of a delivery: its text without the tier, which is what the model gets; its JSON value,
 * undefined if it is not JSON; the requested tier, which may be over the maximum.
 */
export type Payload = ReturnType<typeof readPayload>

/** What a silence matches, such as `alertname`, `service`, `instance` and `severity`. */
export type Labels = Readonly<Record<string, string>>

/** One alert of a group, as its sender knows it. */
export interface AlertMember {
  status: AlertStatus
  /** Deliveries with the same fingerprint belong together. */
  fingerprint: string
  title: string
  labels: Labels
  startsAt: Date | null
  /** Null while it is firing. */
  endsAt: Date | null
}

/** What a delivery says, in the same shape for all senders, bounded and without secrets. */
export interface ReadAlert extends AlertMember {
  /** A hash of the text without its times: deliveries with the same one have the same text. */
  content: string
  /** The program that sent it, such as `alertmanager`; null if unknown. */
  source: string | null
  service: string | null
  /** The first alerts of a group; none for senders without groups. */
  members: readonly AlertMember[]
}

/** Each reads the bodies of its senders, and leaves all others to the next one. */
const READERS = [readSubscription, readAlertmanager, readUptimeKuma, readSentry, readCloudWatch]

const FIRST_TIER = 1
const LAST_TIER = 3
const MAX_TITLE = 200
const MAX_LABELS = 64
/** Bounds the time that labels take which do not count, such as blank ones. */
const MAX_LOOKED_AT = 1_000
/** Of a name, and of a value. */
const MAX_BYTES = 256
/** Silences match these most often: they are kept where an alert has too many. */
const FIRST = ['alertname', 'service', 'instance', 'severity']

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

/** Reads the alert of a delivery, whoever sent it. A group is one alert, with its members. */
export function readAlert(payload: Payload, redact: Redact): ReadAlert {
  const body = openForm(openEnvelope(payload))
  const found = readBody(body)
  const title = titleOf(found.title ?? body.text, redact)
  const content = contentOf(payload.text)
  const key = found.key ?? (body === payload ? content : contentOf(body.text))
  // Each alert has a name that silences can match; a group has the one that its alerts share.
  const name = found.members.length === 0 ? [['alertname', title] as const] : []
  const alert = toMember({ ...found, title, key, labels: [...found.labels, ...name] }, redact)
  return {
    ...alert,
    content,
    source: found.source,
    service: alert.labels['service'] ?? null,
    members: found.members.map((member) => toMember(member, redact)),
  }
}

const FORM = /^[\w.%+-]{1,100}=[^\s{}"]*$/

/** Some senders, such as StatusCake, post a form: its fields are read as members. */
function openForm(body: Body): Body {
  if (body.value !== undefined || !FORM.test(body.text)) return body
  return { ...body, value: Object.fromEntries(new URLSearchParams(firstFields(body.text))) }
}

function readBody(body: Body): FoundAlert {
  for (const read of READERS) {
    const found = read(body)
    if (found !== undefined) return found
  }
  return readPlain(body)
}

function toMember(found: FoundMember, redact: Redact): AlertMember {
  const { status, key, title, startsAt, endsAt } = found
  const labels = readLabels(found.labels, redact)
  return {
    status,
    fingerprint: fingerprintOf(key ?? contentOf(JSON.stringify(labels)), redact),
    title: titleOf(title ?? '', redact),
    labels,
    startsAt,
    endsAt: status === 'resolved' ? endsAt : null,
  }
}

function titleOf(text: string, redact: Redact): string {
  const title = redactLine(text, MAX_TITLE + 1, redact)
  if (title.length > MAX_TITLE) return `${title.slice(0, MAX_TITLE - 1).toWellFormed()}…`
  return title || 'an alert without text'
}

/** The first labels of an alert, in short and without secrets. */
function readLabels(given: readonly FoundLabel[], redact: Redact): Labels {
  const labels = new Map<string, string>()
  const usual = given.filter(([name]) => FIRST.includes(name))
  for (const [name, value] of [...usual, ...given].slice(0, MAX_LOOKED_AT)) {
    if (!['string', 'number', 'boolean'].includes(typeof value)) continue
    const [short, text] = [shorten(name, redact), shorten(String(value), redact)]
    if (short && text && !labels.has(short)) labels.set(short, text)
    if (labels.size === MAX_LABELS) break
  }
  return Object.fromEntries(labels)
}

function shorten(text: string, redact: Redact) {
  return cutBytes(redactLine(text, MAX_BYTES + 1, redact), MAX_BYTES)
}
