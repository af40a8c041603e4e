import { memberAt, objectsOf, parseJson, stringOf } from '../../../../../kernel/json.ts'
import { changedAt, textOf, timeOf, toLabel } from './sender.ts'
import type { Body, FoundAlert } from './sender.ts'

/** What the messages that SNS sends of itself mean. */
const TITLES = new Map([
  ['SubscriptionConfirmation', 'Open the SubscribeURL in its text to subscribe to'],
  ['UnsubscribeConfirmation', 'SNS sends no more messages of'],
])

/**
 * Takes the message out of its envelope where Amazon SNS sent it; any other body is returned as it
 * is. SNS sends the envelope as text, not as JSON.
 */
export function openEnvelope(body: Body): Body {
  const message = stringOf(memberAt(body.value, 'Message'))
  if (message === undefined || typeOf(body) !== 'Notification') return body
  return { text: message, value: parseJson(message) }
}

/**
 * Reads the messages of SNS itself. A subscription begins when somebody opens the URL in its
 * message: nothing here does, because the message may name any address.
 */
export function readSubscription(body: Body): FoundAlert | undefined {
  const title = TITLES.get(typeOf(body) ?? '')
  const topic = stringOf(memberAt(body.value, 'TopicArn'))
  if (title === undefined || topic === undefined) return undefined
  return {
    source: 'sns',
    status: 'firing',
    key: `sns:${topic}`,
    title: `${title} ${topic}`,
    labels: [
      ['alertname', typeOf(body)],
      ['topic', topic],
    ],
    startsAt: timeOf(memberAt(body.value, 'Timestamp')),
    endsAt: null,
    members: [],
  }
}

/**
 * Reads an alarm of CloudWatch. Without enough data it is firing: nothing shows that what it
 * watches is well.
 */
export function readCloudWatch({ value }: Body): FoundAlert | undefined {
  const name = textOf(memberAt(value, 'AlarmName'))
  const state = stringOf(memberAt(value, 'NewStateValue'))
  if (name === undefined || state === undefined) return undefined
  const account = stringOf(memberAt(value, 'AWSAccountId')) ?? ''
  const region = stringOf(memberAt(value, 'Region')) ?? ''
  const status = state === 'OK' ? 'resolved' : 'firing'
  return {
    source: 'cloudwatch',
    status,
    key: stringOf(memberAt(value, 'AlarmArn')) ?? `cloudwatch:${account}:${region}:${name}`,
    title: name,
    labels: [
      ['alertname', name],
      ['region', region],
      ['account', account],
      ['namespace', memberAt(value, 'Trigger.Namespace')],
      ['metric', memberAt(value, 'Trigger.MetricName')],
      ...objectsOf(memberAt(value, 'Trigger.Dimensions')).map(toLabel),
    ],
    ...changedAt(status, memberAt(value, 'StateChangeTime')),
    members: [],
  }
}

/** The type of a message of SNS. */
function typeOf({ value }: Body) {
  const isSns = stringOf(memberAt(value, 'TopicArn')) !== undefined
  return isSns ? stringOf(memberAt(value, 'Type')) : undefined
}
