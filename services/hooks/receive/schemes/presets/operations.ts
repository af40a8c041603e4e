import type { Preset } from '../scheme.ts'
import {
  BASE64,
  BEARER,
  HEX,
  ID,
  NOWHERE,
  SNS_HOST,
  SNS_NOTIFICATION,
  SNS_SUBSCRIPTION,
  STANDARD_WEBHOOKS,
  TYPE,
} from './shared.ts'

// Alerts, sign-in, and what runs for others.

export const OPERATIONS: readonly Preset[] = [
  {
    name: 'sentry',
    title: 'Sentry',
    docs: 'https://docs.sentry.io/integrations/integration-platform/webhooks/',
    setup:
      'Under Settings, Custom Integrations, create an internal integration with this URL as ' +
      'Webhook URL. Copy its Client Secret.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['sentry-hook-signature', 'sentry-app-signature'],
      type: { headers: ['sentry-hook-resource'], json: [] },
      id: { headers: ['request-id'], json: [] },
      isGiven: true,
    },
  },
  {
    name: 'pagerduty',
    title: 'PagerDuty',
    docs: 'https://docs.pagerduty.com/developer/verifying-webhook-signatures',
    setup:
      'Under Integrations, Generic Webhooks (v3), add this URL. Copy the secret that is shown.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-pagerduty-signature'],
      prefix: 'v1=',
      list: { separator: ',' },
      type: { headers: [], json: ['event.event_type'] },
      id: { headers: [], json: ['event.id'] },
      isGiven: true,
    },
  },
  {
    name: 'datadog',
    title: 'Datadog (token)',
    docs: 'https://docs.datadoghq.com/integrations/webhooks/',
    setup:
      'In the Webhooks integration, add this URL. Under Custom Headers, write ' +
      '{"Authorization": "Bearer TOKEN"} with the token that is made here.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['event_type'] },
      // Of the usual payload: in another one `id` may be that of the alert.
      id: { headers: [], json: [['id', 'event_type', 'last_updated']] },
    },
  },
  {
    name: 'grafana',
    title: 'Grafana (token)',
    docs:
      'https://grafana.com/docs/grafana/latest/alerting/configure-notifications/' +
      'manage-contact-points/integrations/webhook-notifier/',
    setup:
      'Under Alerting, Contact points, add a webhook with this URL. Set the authorization header ' +
      'to the scheme Bearer with the token that is made here.',
    tested: 'document',
    scheme: { token: [], type: { headers: [], json: ['status'] }, id: NOWHERE },
  },
  {
    name: 'grafana-signed',
    title: 'Grafana (HMAC, from 12.0)',
    docs:
      'https://grafana.com/docs/grafana/latest/alerting/configure-notifications/' +
      'manage-contact-points/integrations/webhook-notifier/',
    setup:
      'Under Alerting, Contact points, add a webhook with this URL. Under HMAC Signature, paste ' +
      'the secret that is made here and leave the timestamp header empty.',
    tested: 'document',
    scheme: {
      ...HEX,
      signature: ['x-grafana-alerting-signature'],
      type: { headers: [], json: ['status'] },
      id: NOWHERE,
      repeatsBytes: true,
    },
  },
  {
    name: 'alertmanager',
    title: 'Prometheus Alertmanager (token)',
    docs: 'https://prometheus.io/docs/alerting/latest/configuration/#webhook_config',
    setup:
      'Add this URL as a webhook_config of a receiver. Set the credentials of its http_config, ' +
      'authorization, to the token that is made here.',
    tested: 'document',
    scheme: { token: [], type: { headers: [], json: ['status'] }, id: NOWHERE },
  },
  {
    name: 'better-stack',
    title: 'Better Stack (password)',
    docs: 'https://betterstack.com/docs/uptime/webhooks/',
    setup:
      'Under Integrations, Exporting data, add an outgoing webhook with this URL. In its request ' +
      'template, paste the token that is made here as the password of basic authentication.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['event', 'data.attributes.event', 'event_type'] },
      id: NOWHERE,
    },
  },
  {
    name: 'microsoft-graph',
    title: 'Microsoft Graph (token in the URL)',
    docs: 'https://learn.microsoft.com/en-us/graph/change-notifications-delivery-webhooks',
    setup:
      'Create a subscription whose notificationUrl is this URL with ?token=TOKEN behind it. ' +
      'TOKEN is the token that is made here.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['value.0.changeType', 'value.0.lifecycleEvent'] },
      id: { headers: [], json: ['value.*.id'] },
      handshake: 'microsoft-graph',
    },
  },
  {
    name: 'auth0',
    title: 'Auth0 (token)',
    docs: 'https://auth0.com/docs/customize/log-streams/custom-log-streams',
    setup:
      'Under Monitoring, Streams, create a custom webhook with this URL. Set the authorization ' +
      'token to Bearer, a space and the token that is made here.',
    tested: 'document',
    scheme: {
      token: [],
      type: { headers: [], json: ['0.data.type', 'data.type'] },
      id: { headers: [], json: ['*.log_id', 'log_id'] },
    },
  },
  {
    name: 'clerk',
    title: 'Clerk',
    docs: 'https://clerk.com/docs/webhooks/overview',
    setup:
      'In the Dashboard, under Webhooks, add an endpoint with this URL. Copy its signing secret, ' +
      'which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STANDARD_WEBHOOKS,
      signature: ['svix-signature'],
      timestamp: ['svix-timestamp'],
      type: TYPE,
      id: { headers: ['svix-id'], json: [] },
      isGiven: true,
    },
  },
  {
    name: 'workos',
    title: 'WorkOS',
    docs: 'https://workos.com/docs/events/data-syncing/webhooks',
    setup:
      'In the Dashboard, under Webhooks, add an endpoint with this URL. Copy its signing secret.',
    tested: 'library',
    scheme: {
      ...HEX,
      signature: ['workos-signature'],
      prefix: 'v1=',
      list: { separator: ',', time: 't=', isSpaced: true },
      signed: '{timestamp}.{body}',
      clock: 'milliseconds',
      type: { headers: [], json: ['event'] },
      id: ID,
      isGiven: true,
      answer: 200,
    },
  },
  {
    name: 'openai',
    title: 'OpenAI',
    docs: 'https://platform.openai.com/docs/guides/webhooks',
    setup:
      'In the settings of the project, under Webhooks, create an endpoint with this URL. Copy ' +
      'its signing secret, which begins with whsec_.',
    tested: 'library',
    scheme: {
      ...STANDARD_WEBHOOKS,
      signature: ['webhook-signature'],
      timestamp: ['webhook-timestamp'],
      type: TYPE,
      id: { headers: ['webhook-id'], json: [] },
      isGiven: true,
    },
  },
  {
    name: 'aws-sns',
    title: 'Amazon SNS',
    docs: 'https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html',
    setup:
      'Subscribe this URL to a topic by HTTPS, without raw message delivery. Name the ARN of the ' +
      'topic here: its subscription is then confirmed by itself.',
    tested: 'document',
    scheme: {
      ...BASE64,
      signature: ['json:Signature'],
      algorithm: 'rsa-sha256',
      signed: '{lines}',
      type: { headers: [], json: ['Type'] },
      id: { headers: [], json: ['MessageId'] },
      secret: 'none',
      fetched: {
        kind: 'certificate',
        at: 'json:SigningCertURL',
        from: { host: SNS_HOST, path: /^\/SimpleNotificationService-[\w-]{1,128}\.pem$/ },
        versions: {
          member: 'SignatureVersion',
          algorithms: { 1: 'rsa-sha1', 2: 'rsa-sha256' },
        },
        lines: {
          by: 'Type',
          members: {
            Notification: SNS_NOTIFICATION,
            SubscriptionConfirmation: SNS_SUBSCRIPTION,
            UnsubscribeConfirmation: SNS_SUBSCRIPTION,
          },
        },
        subscription: {
          topic: 'TopicArn',
          type: 'Type',
          asks: 'SubscriptionConfirmation',
          url: 'SubscribeURL',
          from: { host: SNS_HOST, path: /^\/\?Action=ConfirmSubscription&[\x21-\x7e]{1,1024}$/ },
        },
      },
      asks: { topics: false },
      refusal: 401,
      answer: 200,
    },
  },
  {
    name: 'google-pubsub',
    title: 'Google Pub/Sub (push, OpenID token)',
    docs: 'https://docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions',
    setup:
      'Create a push subscription with this URL, authentication and a service account. Name its ' +
      'audience here, and the e-mail address of the service account as the subject.',
    tested: 'document',
    scheme: {
      ...BEARER,
      type: { headers: [], json: ['message.attributes.eventType'] },
      id: { headers: [], json: ['message.messageId'] },
      fetched: { kind: 'openid', issuer: 'https://accounts.google.com' },
      asks: { audience: true, subject: true },
    },
  },
]
