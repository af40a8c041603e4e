import { memberAt, stringOf } from '../../../../../kernel/json.ts'
import { keyOf, labelsOf, textOf, timeOf } from './sender.ts'
import type { AlertStatus, Body, FoundAlert } from './sender.ts'
import { monitorKey } from './uptime-kuma.ts'

/** Programs whose bodies people write themselves: docs/alerts.md has what they paste. */
const TEMPLATED = ['datadog', 'gatus', 'healthchecks', 'zabbix']
/** Where senders say what an alert is now; the first text counts. Datadog and Checkly send what people write. */
const STATES = [
  'status',
  'state',
  'Status',
  'current_state',
  'alert_transition',
  'alertTransition',
  'alert_type',
  'alertType',
]
/** Texts of a state that end an alert, in any case; all others are firing. */
const RESOLVED = [
  'resolved',
  'recovered',
  'warn recovered',
  'no data recovered',
  'ok',
  'up',
  'closed',
  'normal',
  'healthy',
  // Netdata; a check that is gone.
  'clear',
  'removed',
  // Pingdom's transactions.
  'success',
  // Checkly.
  'recovery',
  'alert_recovery',
  'alert_degraded_recovery',
]
/** Paths of keys that stay the same for all deliveries of one alert. */
const KEYS = [
  'fingerprint',
  'dedup_key',
  'incident_key',
  'alert_id',
  'alertId',
  'alert.alertId',
  'event.data.incident.id',
  'event.data.id',
  'incident.incident_id',
  'id',
]
/** Paths of titles. */
const TITLES = [
  'title',
  'commonAnnotations.summary',
  'alerts.0.annotations.summary',
  'commonLabels.alertname',
  'alerts.0.labels.alertname',
  'summary',
  'subject',
  'event.data.title',
  'monitor.name',
  'check_name',
  'Name',
  'message',
  'msg',
  'text',
  'name',
]
/** Members that are labels, beside those of `labels`. */
const LABELS = ['alertname', 'service', 'instance', 'severity', 'host']

/** Reads a body of any other sender. A body that is not a JSON object is firing, and has no labels. */
export function readPlain({ value }: Body): FoundAlert {
  const source = stringOf(memberAt(value, 'source'))?.toLowerCase()
  const own = LABELS.map((name) => [name, memberAt(value, name)] as const)
  const labels = labelsOf(memberAt(value, 'labels'))
  return {
    source: source !== undefined && TEMPLATED.includes(source) ? source : null,
    status: STATES.map((name) => statusOf(memberAt(value, name))).find(Boolean) ?? 'firing',
    key: plainKey(value),
    title: plainTitle(value),
    labels: [...own, ...labels],
    startsAt: timeOf(memberAt(value, 'starts_at')),
    endsAt: timeOf(memberAt(value, 'ends_at')),
    members: [],
  }
}

/** The status that a text means; undefined for a value that is no text. */
export function statusOf(value: unknown): AlertStatus | undefined {
  const text = textOf(value)
  if (text === undefined) return undefined
  return RESOLVED.includes(text.trim().toLowerCase()) ? 'resolved' : 'firing'
}

/** The first known key of a body. */
export function plainKey(value: unknown): string | undefined {
  const keys = KEYS.map((path) => keyOf(memberAt(value, path)))
  return [monitorKey(value), checkKey(value), ...keys].find((key) => key !== undefined)
}

/** Pingdom numbers its checks; StatusCake has a name and an address alone. */
function checkKey(value: unknown): string | undefined {
  const [id, name] = [memberAt(value, 'check_id'), textOf(memberAt(value, 'check_name'))]
  if (typeof id === 'number' && name !== undefined) return `check:${id}:${name}`
  const cake = [memberAt(value, 'Name'), memberAt(value, 'URL')].map(textOf)
  return cake.includes(undefined) ? undefined : `check:${cake.join(':')}`
}

/** The first known title of a body. */
export function plainTitle(value: unknown): string | undefined {
  return TITLES.map((path) => textOf(memberAt(value, path))).find((title) => title !== undefined)
}
