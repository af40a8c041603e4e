import { isList, memberAt, objectOf, stringOf } from '../../../../../kernel/json.ts'
import { textOf, timeOf } from './sender.ts'
import type { Body, FoundAlert, FoundLabel } from './sender.ts'

/** Actions after which nobody has to look: an archived issue was put aside by a person. */
const RESOLVED = ['resolved', 'archived', 'ignored']
/** The project in the address of an event, such as `/api/0/projects/ORGANIZATION/PROJECT/events/`. */
const PROJECT = /\/projects\/[^/]{1,100}\/([^/]{1,100})\/events\//

/**
 * Reads the webhooks of a Sentry integration. Which of them a delivery is stands in the header
 * `Sentry-Hook-Resource`, and in what `data` has. Alerts on an issue and changes of that issue have
 * one key, so that a resolved issue ends its alerts.
 */
export function readSentry({ value }: Body): FoundAlert | undefined {
  const action = stringOf(memberAt(value, 'action'))
  const data = memberAt(value, 'data')
  if (memberAt(value, 'installation.uuid') === undefined || action === undefined) return undefined
  const about = readMetric(data, action) ?? readEvent(data) ?? readIssue(data)
  if (about === undefined) return undefined
  return {
    source: 'sentry',
    status: RESOLVED.includes(action) ? 'resolved' : 'firing',
    endsAt: null,
    members: [],
    ...about,
  }
}

/** A metric alert. Its key is the rule's: each time the rule fires, the alert has another id. */
function readMetric(data: unknown, action: string) {
  const id = stringOf(memberAt(data, 'metric_alert.alert_rule.id'))
  if (id === undefined) return undefined
  const name = textOf(memberAt(data, 'metric_alert.alert_rule.name'))
  const organization = stringOf(memberAt(data, 'metric_alert.organization_id')) ?? ''
  return {
    key: `sentry:rule:${organization}:${id}`,
    title: textOf(memberAt(data, 'description_title')) ?? name,
    labels: [
      ['alertname', name],
      ['service', memberAt(data, 'metric_alert.projects.0')],
      ['severity', action === 'resolved' ? undefined : action],
      ['environment', memberAt(data, 'metric_alert.alert_rule.environment')],
    ] satisfies FoundLabel[],
    startsAt: timeOf(memberAt(data, 'metric_alert.date_started')),
    endsAt: timeOf(memberAt(data, 'metric_alert.date_closed')),
  }
}

/** An issue alert, with the event that triggered it. */
function readEvent(data: unknown) {
  const issue = stringOf(memberAt(data, 'event.issue_id'))
  if (issue === undefined) return undefined
  const [, project] = PROJECT.exec(stringOf(memberAt(data, 'event.url')) ?? '') ?? []
  const tags = memberAt(data, 'event.tags')
  return {
    key: issueKey(issue),
    title: textOf(memberAt(data, 'event.title')),
    labels: [
      ['alertname', memberAt(data, 'triggered_rule')],
      ['service', project],
      ['severity', memberAt(data, 'event.level')],
      ...(isList(tags) ? tags.map(tagToLabel) : []),
    ] satisfies FoundLabel[],
    startsAt: timeOf(memberAt(data, 'event.datetime')),
  }
}

function readIssue(data: unknown) {
  const issue = objectOf(memberAt(data, 'issue'))
  const id = stringOf(issue['id'])
  if (id === undefined) return undefined
  return {
    key: issueKey(id),
    title: textOf(issue['title']),
    labels: [
      ['service', memberAt(issue, 'project.slug')],
      ['severity', issue['level']],
    ] satisfies FoundLabel[],
    startsAt: timeOf(issue['firstSeen']),
  }
}

function issueKey(id: string) {
  return `sentry:issue:${id}`
}

/** A tag is a list of its name and its value. */
function tagToLabel(tag: unknown): FoundLabel {
  return [stringOf(memberAt(tag, '0')) ?? '', memberAt(tag, '1')]
}
