import { isList, memberAt, objectsOf } from '../../../../../kernel/json.ts'
import type { JsonObject } from '../../../../../kernel/json.ts'
import { plainKey, plainTitle, statusOf } from './plain.ts'
import { keyOf, labelsOf, textOf, timeOf } from './sender.ts'
import type { AlertStatus, Body, FoundAlert, FoundLabel, FoundMember } from './sender.ts'

/** A larger group is read by its status and common labels all the same. */
const MAX_MEMBERS = 50

/**
 * Reads what Alertmanager and Grafana send: a group of alerts, which keeps its key while alerts
 * join and leave it. It is resolved once all of its alerts are. Grafana's key must be the group's,
 * too: the delivery that resolves a group has only those alerts that were left in it.
 */
export function readAlertmanager({ value }: Body): FoundAlert | undefined {
  const alerts = memberAt(value, 'alerts')
  if (!isList(alerts)) return undefined
  const members = objectsOf(alerts.slice(0, MAX_MEMBERS)).map(readMember)
  const group = memberAt(value, 'groupKey')
  const status = groupStatus(memberAt(value, 'status'), alerts)
  // What is over since says nothing of when the others began.
  const lasting = members.filter((member) => status === 'resolved' || member.status === 'firing')
  return {
    source: sourceOf(value, group),
    status,
    key: keyOf(group) ?? (alerts.length === 1 ? members[0]?.key : undefined) ?? plainKey(value),
    title: plainTitle(value),
    labels: groupLabels(value, members),
    startsAt: inOrder(lasting.map(({ startsAt }) => startsAt)).at(0) ?? null,
    endsAt: inOrder(members.map(({ endsAt }) => endsAt)).at(-1) ?? null,
    members,
  }
}

/** What the sender says that all share; else what those that fire share, and what they are grouped by. */
function groupLabels(value: unknown, members: readonly FoundMember[]): readonly FoundLabel[] {
  const common = memberAt(value, 'commonLabels')
  if (common !== undefined) return labelsOf(common)
  const firing = members.filter(({ status }) => status === 'firing')
  const [first, ...others] = firing.length === 0 ? members : firing
  const known = others.map(({ labels }) => new Map(labels))
  const shared = (first?.labels ?? []).filter(([name, value]) =>
    known.every((labels) => labels.get(name) === value),
  )
  return [...shared, ...labelsOf(memberAt(value, 'groupLabels'))]
}

/**
 * The status that the sender gives: where it has cut the group, it knows more alerts than it sends.
 * Without one, a group is resolved if all of its alerts are.
 */
function groupStatus(given: unknown, alerts: readonly unknown[]): AlertStatus {
  const states = alerts.map((alert) => statusOf(memberAt(alert, 'status')) ?? 'firing')
  const isResolved = alerts.length > 0 && !states.includes('firing')
  return statusOf(given) ?? (isResolved ? 'resolved' : 'firing')
}

function readMember(alert: JsonObject): FoundMember {
  return {
    status: statusOf(alert['status']) ?? 'firing',
    key: keyOf(alert['fingerprint']),
    title:
      textOf(memberAt(alert, 'annotations.summary')) ??
      textOf(memberAt(alert, 'labels.alertname')),
    labels: labelsOf(alert['labels']),
    startsAt: timeOf(alert['startsAt']),
    endsAt: timeOf(alert['endsAt']),
  }
}

function sourceOf(value: unknown, group: unknown) {
  if (memberAt(value, 'orgId') !== undefined) return 'grafana'
  return group === undefined ? null : 'alertmanager'
}

function inOrder(times: readonly (Date | null)[]) {
  return times.filter((time) => time !== null).toSorted((a, b) => a.getTime() - b.getTime())
}
