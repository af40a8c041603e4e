import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { now } from './hooks.ts'
import {
  mac,
  rfc3339,
  ed25519,
  p256,
  signed,
  plain,
  hex,
  sha256Hex,
  base64,
  standard,
  token,
  json,
  number,
  USUAL,
  type PresetSender,
  hexKey,
  jwt,
  sha256,
  JSON_BODY,
  type Sending,
} from './preset-signing.ts'

/** By a standard, and as an operator describes it. */
const OWN: readonly PresetSender[] = [
  standard('standard', 'webhook'),
  standard('svix', 'svix'),
  {
    ...standard('standard-v1a', 'webhook', {
      makeSecret: () => ed25519('whpk'),
      detail: 'ed25519 ok',
      byLibrary: false,
    }),
    sign: (secret, { body, id, at }) => ({
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': `v1a,${signed(secret, `${id}.${at}.${body}`, null).toString('base64')}`,
    }),
  },
  plain('hmac', 'X-Signature', hex, {
    says: (id) => ({ 'X-Event-Type': 'thing.done', 'X-Delivery-Id': id }),
    type: 'thing.done',
    hasId: true,
  }),
]

/** Code, its builds, and where it runs. */
const CODE: readonly PresetSender[] = [
  {
    ...plain('github', 'X-Hub-Signature-256', sha256Hex, { type: 'push', hasId: true }),
    sign: async (secret, { body, id }) => ({
      'X-Hub-Signature-256': await signGithub(secret, body),
      'X-GitHub-Event': 'push',
      'X-GitHub-Delivery': id,
    }),
  },
  token('gitlab', 'X-Gitlab-Token', {
    says: (id) => ({ 'X-Gitlab-Event': 'Push Hook', 'Idempotency-Key': id }),
    type: 'Push Hook',
    hasId: true,
  }),
  {
    ...standard('gitlab-signed', 'webhook', { type: 'Push Hook', body: () => JSON_BODY }),
    sign: (secret, { body, id, at }) => ({
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': new Webhook(secret).sign(id, new Date(at * 1_000), body),
      'X-Gitlab-Event': 'Push Hook',
      'Idempotency-Key': id,
    }),
  },
  plain('gitea', 'X-Gitea-Signature', hex, {
    says: (id) => ({ 'X-Gitea-Event': 'push', 'X-Gitea-Delivery': id }),
    type: 'push',
    hasId: true,
  }),
  plain('forgejo', 'X-Forgejo-Signature', hex, {
    says: (id) => ({ 'X-Forgejo-Event': 'push', 'X-Forgejo-Delivery': id }),
    type: 'push',
    hasId: true,
  }),
  plain('bitbucket', 'X-Hub-Signature', sha256Hex, {
    says: (id) => ({ 'X-Event-Key': 'repo:push', 'X-Request-UUID': id }),
    type: 'repo:push',
    hasId: true,
  }),
  token('azure-devops', 'authorization', {
    body: ({ id }) => JSON.stringify({ id, eventType: 'git.push' }),
    type: 'git.push',
    hasId: true,
  }),
  plain('circleci', 'circleci-signature', (secret, body) => `v1=${mac(secret, body)}`, {
    says: () => ({ 'circleci-event-type': 'job-completed' }),
    body: ({ id }) => JSON.stringify({ id, type: 'job-completed' }),
    type: 'job-completed',
    hasId: true,
  }),
  {
    ...plain('buildkite', 'X-Buildkite-Signature', hex, { type: 'build.finished', isTimed: true }),
    sign: (secret, { body, at }) => ({
      'X-Buildkite-Signature': `timestamp=${at},signature=${mac(secret, `${at}.${body}`)}`,
      'X-Buildkite-Event': 'build.finished',
    }),
  },
  plain('vercel', 'x-vercel-signature', (secret, body) => mac(secret, body, 'hex', 'sha1'), {
    body: ({ id }) => JSON.stringify({ id, type: 'deployment.created' }),
    type: 'deployment.created',
    hasId: true,
    detail: 'hmac-sha1 ok',
  }),
  {
    ...plain('netlify', 'X-Webhook-Signature', hex, { type: 'deploy_created' }),
    sign: (secret, { body }) => ({
      'X-Webhook-Signature': jwt(secret, { iss: 'netlify', sha256: sha256(body) }),
      'X-Netlify-Event': 'deploy_created',
    }),
  },
  plain('npm', 'x-npm-signature', sha256Hex, {
    body: json({ event: 'package:publish' }),
    type: 'package:publish',
  }),
  plain('linear', 'Linear-Signature', hex, {
    says: (id) => ({ 'Linear-Event': 'Issue', 'Linear-Delivery': id }),
    body: ({ at }) => JSON.stringify({ action: 'create', webhookTimestamp: at * 1_000 }),
    type: 'Issue',
    hasId: true,
    stored: 200,
    isTimed: true,
  }),
  plain('jira', 'X-Hub-Signature', sha256Hex, {
    says: (id) => ({ 'X-Atlassian-Webhook-Identifier': id }),
    body: json({ webhookEvent: 'jira:issue_created' }),
    type: 'jira:issue_created',
    hasId: true,
  }),
]

/** Payments and shops. */
const SHOPS: readonly PresetSender[] = [
  {
    ...plain('stripe', 'Stripe-Signature', hex, {
      body: ({ id }) => JSON.stringify({ id, type: 'charge.paid' }),
      type: 'charge.paid',
      hasId: true,
      isTimed: true,
      byLibrary: true,
    }),
    sign: (secret, { body: payload, at: timestamp }) => ({
      'Stripe-Signature': Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    }),
  },
  {
    ...plain('paddle', 'Paddle-Signature', hex, {
      body: ({ id }) => JSON.stringify({ notification_id: id, event_type: 'customer.created' }),
      type: 'customer.created',
      hasId: true,
      stored: 200,
      isTimed: true,
    }),
    sign: (secret, { body, at }) => ({
      'Paddle-Signature': `ts=${at};h1=${mac(secret, `${at}:${body}`)}`,
    }),
  },
  plain('lemon-squeezy', 'X-Signature', hex, {
    says: () => ({ 'X-Event-Name': 'order_created' }),
    type: 'order_created',
    stored: 200,
  }),
  {
    ...plain('square', 'x-square-hmacsha256-signature', base64, {
      body: ({ id }) => JSON.stringify({ event_id: id, type: 'payment.updated' }),
      type: 'payment.updated',
      hasId: true,
    }),
    sign: (secret, { body, url }) => ({
      'x-square-hmacsha256-signature': mac(secret, url + body, 'base64'),
    }),
  },
  {
    ...USUAL,
    scheme: 'adyen',
    makeSecret: hexKey,
    proof: [],
    sign: () => ({}),
    body: ({ id }, secret) => {
      const amount = { value: 4_200, currency: 'EUR' }
      const text = `${id}::Castle:toll:4200:EUR:AUTHORISATION:true`
      const NotificationRequestItem = {
        additionalData: { hmacSignature: mac(Buffer.from(secret, 'hex'), text, 'base64') },
        pspReference: id,
        merchantAccountCode: 'Castle',
        merchantReference: 'toll',
        amount,
        eventCode: 'AUTHORISATION',
        success: 'true',
      }
      return JSON.stringify({ live: 'false', notificationItems: [{ NotificationRequestItem }] })
    },
    type: 'AUTHORISATION',
    detail: 'token ok',
  },
  {
    ...plain('adyen-platform', 'HmacSignature', hex, {
      makeSecret: hexKey,
      body: json({ type: 'balancePlatform.transfer.created' }),
      type: 'balancePlatform.transfer.created',
    }),
    sign: (secret, { body }) => ({
      HmacSignature: mac(Buffer.from(secret, 'hex'), body, 'base64'),
    }),
  },
  plain('mollie', 'X-Mollie-Signature', sha256Hex, {
    body: ({ id }) => JSON.stringify({ id, type: 'payment-link.paid' }),
    type: 'payment-link.paid',
    hasId: true,
  }),
  plain('razorpay', 'X-Razorpay-Signature', hex, {
    says: (id) => ({ 'x-razorpay-event-id': id }),
    body: json({ event: 'payment.captured' }),
    type: 'payment.captured',
    hasId: true,
  }),
  plain('shopify', 'Shopify-Hmac-Sha256', base64, {
    says: (id) => ({ 'Shopify-Topic': 'orders/create', 'Shopify-Webhook-Id': id }),
    type: 'orders/create',
    hasId: true,
  }),
  plain('woocommerce', 'X-WC-Webhook-Signature', base64, {
    says: (id) => ({ 'X-WC-Webhook-Topic': 'order.created', 'X-WC-Webhook-Delivery-ID': id }),
    type: 'order.created',
    hasId: true,
  }),
]

/** Chat, calls, mail and social networks. */
const CHAT: readonly PresetSender[] = [
  ...(['slack', 'zoom'] as const).map((scheme): PresetSender => {
    const isSlack = scheme === 'slack'
    const [header, time] = isSlack
      ? ['X-Slack-Signature', 'X-Slack-Request-Timestamp']
      : ['x-zm-signature', 'x-zm-request-timestamp']
    return {
      ...USUAL,
      scheme,
      proof: [header, time],
      sign: (secret, { body, at }) => ({
        [header]: `v0=${mac(secret, `v0:${at}:${body}`)}`,
        [time]: String(at),
      }),
      body: ({ id }) =>
        isSlack
          ? JSON.stringify({ event_id: id, event: { type: 'app_mention' } })
          : JSON.stringify({ event: 'meeting.started' }),
      type: isSlack ? 'app_mention' : 'meeting.started',
      hasId: isSlack,
      stored: isSlack ? 202 : 200,
      isTimed: true,
    }
  }),
  ...['discord', 'ed25519'].map((scheme): PresetSender => ({
    ...USUAL,
    scheme,
    makeSecret: () => ed25519('hex'),
    proof: ['X-Signature-Ed25519', 'X-Signature-Timestamp'],
    sign: (secret, { body, at }) => ({
      'X-Signature-Ed25519': signed(secret, `${at}${body}`, null).toString('hex'),
      'X-Signature-Timestamp': String(at),
    }),
    body: ({ at }) => {
      const event = { type: 'ENTITLEMENT_CREATE', timestamp: rfc3339(at) }
      return JSON.stringify({ version: 1, application_id: '1234', type: 1, event })
    },
    type: 'ENTITLEMENT_CREATE',
    detail: 'ed25519 ok',
    stored: 204,
    refused: 401,
    isTimed: true,
  })),
  token('telegram', 'X-Telegram-Bot-Api-Secret-Token', {
    body: ({ id }) => JSON.stringify({ update_id: number(id), message: { text: '/start' } }),
    type: 'message',
    hasId: true,
    eventId: ({ id }) => String(number(id)),
  }),
  {
    ...plain('twilio', 'X-Twilio-Signature', hex, {
      body: ({ id }) => `MessageSid=${id}&MessageStatus=sent&To=%2B18005551212&Body=a+b`,
      contentType: 'application/x-www-form-urlencoded',
      type: 'sent',
      hasId: true,
      detail: 'hmac-sha1 ok',
    }),
    sign: (secret, { body, id, url }) => {
      const fields = new URLSearchParams(body)
      const names = [...fields.keys()].sort()
      const joined = names.map((name) => name + (fields.get(name) ?? '')).join('')
      return {
        'X-Twilio-Signature': mac(secret, url + joined, 'base64', 'sha1'),
        'I-Twilio-Idempotency-Token': id,
      }
    },
  },
  plain('meta', 'X-Hub-Signature-256', sha256Hex, {
    body: json({
      object: 'user',
      entry: [{ time: 1_520_383_571, changes: [{ field: 'photos' }] }],
    }),
    type: 'photos',
    stored: 200,
  }),
  plain('whatsapp', 'X-Hub-Signature-256', sha256Hex, {
    body: ({ id }) => {
      const value = { messaging_product: 'whatsapp', messages: [{ id: `wamid.${id}` }] }
      const changes = [{ field: 'messages', value }]
      return JSON.stringify({ object: 'whatsapp_business_account', entry: [{ changes }] })
    },
    type: 'messages',
    hasId: true,
    eventId: ({ id }) => `wamid.${id}`,
    stored: 200,
  }),
  {
    ...USUAL,
    scheme: 'twitch',
    proof: [
      'Twitch-Eventsub-Message-Signature',
      'Twitch-Eventsub-Message-Timestamp',
      'Twitch-Eventsub-Message-Id',
    ],
    sign: (secret, { body, id, at }) => ({
      'Twitch-Eventsub-Message-Id': id,
      'Twitch-Eventsub-Message-Timestamp': rfc3339(at),
      'Twitch-Eventsub-Message-Signature': `sha256=${mac(secret, id + rfc3339(at) + body)}`,
      'Twitch-Eventsub-Message-Type': 'notification',
      'Twitch-Eventsub-Subscription-Type': 'stream.online',
    }),
    type: 'stream.online',
    hasId: true,
    isTimed: true,
  },
  {
    ...USUAL,
    scheme: 'sendgrid',
    makeSecret: p256,
    proof: ['X-Twilio-Email-Event-Webhook-Signature', 'X-Twilio-Email-Event-Webhook-Timestamp'],
    sign: (secret, { body, at }) => ({
      'X-Twilio-Email-Event-Webhook-Signature': signed(secret, `${at}${body}`, 'sha256').toString(
        'base64',
      ),
      'X-Twilio-Email-Event-Webhook-Timestamp': String(at),
    }),
    body: ({ id }) => {
      const events = ['dropped', 'open'].map((event) => ({ event, sg_event_id: `${event}${id}` }))
      return `${JSON.stringify(events)}\r\n`
    },
    type: 'dropped',
    hasId: true,
    eventId: ({ id }) => `dropped${id}:open${id}`,
    detail: 'ecdsa-p256 ok',
    isTimed: true,
  },
  {
    ...USUAL,
    scheme: 'mailgun',
    proof: [],
    sign: () => ({}),
    body: ({ id, at }, secret) => {
      const stamp = { timestamp: String(at), token: id.padEnd(50, '0') }
      const signature = mac(secret, stamp.timestamp + stamp.token)
      const event = { 'event-data': { event: 'delivered', id } }
      return JSON.stringify({ signature: { ...stamp, signature }, ...event })
    },
    type: 'delivered',
    hasId: true,
    detail: 'token ok',
    stored: 200,
    isTimed: true,
  },
  token('postmark', 'authorization', {
    body: ({ id }) => JSON.stringify({ RecordType: 'Bounce', ID: number(id) }),
    type: 'Bounce',
    hasId: true,
    eventId: ({ id }) => `Bounce:${number(id)}`,
    stored: 200,
    refused: 401,
  }),
  standard('resend', 'svix'),
]

/** Alerts, sign-in, and what runs for others. */
const OPERATIONS: readonly PresetSender[] = [
  plain('sentry', 'Sentry-Hook-Signature', hex, {
    says: (id) => ({ 'Sentry-Hook-Resource': 'issue', 'Request-ID': id }),
    type: 'issue',
    hasId: true,
  }),
  plain('pagerduty', 'X-PagerDuty-Signature', (secret, body) => `v1=${mac(secret, body)}`, {
    body: ({ id }) => JSON.stringify({ event: { id, event_type: 'incident.triggered' } }),
    type: 'incident.triggered',
    hasId: true,
  }),
  token('datadog', 'authorization', {
    body: ({ id }) =>
      JSON.stringify({ id, event_type: 'query_alert_monitor', last_updated: '1764345600000' }),
    type: 'query_alert_monitor',
    hasId: true,
    eventId: ({ id }) => `${id}:query_alert_monitor:1764345600000`,
  }),
  token('grafana', 'authorization', { body: json({ status: 'firing' }), type: 'firing' }),
  plain('grafana-signed', 'X-Grafana-Alerting-Signature', hex, {
    body: json({ status: 'firing' }),
    type: 'firing',
  }),
  token('alertmanager', 'authorization', { body: json({ status: 'firing' }), type: 'firing' }),
  token('better-stack', 'authorization', { body: json({ event: 'started' }), type: 'started' }),
  token('microsoft-graph', 'authorization', {
    body: ({ id }) => JSON.stringify({ value: [{ id, changeType: 'created' }] }),
    type: 'created',
    hasId: true,
  }),
  token('docker-hub', 'authorization'),
  token('auth0', 'authorization', {
    body: ({ id }) => JSON.stringify([{ log_id: id, data: { type: 'fp' } }]),
    type: 'fp',
    hasId: true,
  }),
  standard('clerk', 'svix'),
  standard('openai', 'webhook'),
  {
    ...plain('workos', 'WorkOS-Signature', hex, {
      body: ({ id }) => JSON.stringify({ id, event: 'user.created' }),
      type: 'user.created',
      hasId: true,
      isTimed: true,
      stored: 200,
    }),
    sign: (secret, { body, at }) => ({
      'WorkOS-Signature': `t=${at}000, v1=${mac(secret, `${at}000.${body}`)}`,
    }),
  },
]

/** Work, customers, forms and contents. */
const PEOPLE: readonly PresetSender[] = [
  plain('asana', 'X-Hook-Signature', hex, {
    body: json({ events: [{ action: 'changed', resource: { gid: '1', resource_type: 'task' } }] }),
    type: 'changed',
    stored: 200,
  }),
  {
    ...plain('trello', 'x-trello-webhook', hex, {
      body: ({ id }) => JSON.stringify({ action: { id, type: 'updateCard' } }),
      type: 'updateCard',
      hasId: true,
      detail: 'hmac-sha1 ok',
      stored: 200,
    }),
    sign: (secret, { body, url }) => ({
      'x-trello-webhook': mac(secret, body + url, 'base64', 'sha1'),
    }),
  },
  plain('notion', 'X-Notion-Signature', sha256Hex, {
    body: ({ id }) => JSON.stringify({ id, type: 'page.created' }),
    type: 'page.created',
    hasId: true,
  }),
  plain('clickup', 'X-Signature', hex, {
    body: ({ id }) =>
      JSON.stringify({ event: 'taskCreated', webhook_id: 'w1', history_items: [{ id }] }),
    type: 'taskCreated',
    hasId: true,
    eventId: ({ id }) => `w1:taskCreated:${id}`,
  }),
  token('monday', 'authorization', {
    body: ({ id }) => JSON.stringify({ event: { type: 'create_pulse', triggerUuid: id } }),
    type: 'create_pulse',
    hasId: true,
  }),
  {
    ...USUAL,
    scheme: 'hubspot',
    proof: ['X-HubSpot-Signature-v3', 'X-HubSpot-Request-Timestamp'],
    sign: (secret, { body, at, url }) => ({
      'X-HubSpot-Signature-v3': mac(secret, `POST${url}${body}${at}000`, 'base64'),
      'X-HubSpot-Request-Timestamp': `${at}000`,
    }),
    body: ({ id }) => {
      const event = { subscriptionType: 'contact.creation', attemptNumber: 0 }
      const ids = { eventId: number(id), subscriptionId: 12, occurredAt: 1_462_216_307_945 }
      return JSON.stringify([{ ...event, ...ids }])
    },
    type: 'contact.creation',
    hasId: true,
    eventId: ({ id }) => `12:${number(id)}:1462216307945`,
    isTimed: true,
  },
  plain('intercom', 'X-Hub-Signature', (key, body) => `sha1=${mac(key, body, 'hex', 'sha1')}`, {
    body: ({ id }) => JSON.stringify({ id, topic: 'conversation.user.created' }),
    type: 'conversation.user.created',
    hasId: true,
    detail: 'hmac-sha1 ok',
    stored: 200,
  }),
  {
    ...USUAL,
    scheme: 'zendesk',
    proof: ['X-Zendesk-Webhook-Signature', 'X-Zendesk-Webhook-Signature-Timestamp'],
    sign: (secret, { body, id, at }) => ({
      'X-Zendesk-Webhook-Signature': mac(secret, rfc3339(at) + body, 'base64'),
      'X-Zendesk-Webhook-Signature-Timestamp': rfc3339(at),
      'X-Zendesk-Webhook-Invocation-Id': id,
    }),
    body: json({ type: 'zen:event-type:user.active_changed' }),
    type: 'zen:event-type:user.active_changed',
    hasId: true,
    isTimed: true,
  },
  plain('typeform', 'Typeform-Signature', (key, body) => `sha256=${mac(key, body, 'base64')}`, {
    body: ({ id }) => JSON.stringify({ event_id: id, event_type: 'form_response' }),
    type: 'form_response',
    hasId: true,
  }),
  {
    ...plain('calendly', 'Calendly-Webhook-Signature', hex, {
      body: json({ event: 'invitee.created' }),
      type: 'invitee.created',
      isTimed: true,
    }),
    sign: (secret, { body, at }) => ({
      'Calendly-Webhook-Signature': `t=${at},v1=${mac(secret, `${at}.${body}`)}`,
    }),
  },
  plain('cal-com', 'X-Cal-Signature-256', hex, {
    body: json({ triggerEvent: 'BOOKING_CREATED' }),
    type: 'BOOKING_CREATED',
  }),
  {
    ...USUAL,
    scheme: 'contentful',
    proof: [
      'X-Contentful-Signature',
      'X-Contentful-Signed-Headers',
      'X-Contentful-Timestamp',
      'X-Contentful-Topic',
    ],
    sign: (secret, { body, id, at, url }) => {
      const topic = 'ContentManagement.Entry.publish'
      const names = 'x-contentful-signed-headers,x-contentful-timestamp,x-contentful-topic'
      const signed =
        `x-contentful-signed-headers:${names};x-contentful-timestamp:${at}000;` +
        `x-contentful-topic:${topic}`
      const text = `POST\n${new URL(url).pathname}\n${signed}\n${body}`
      return {
        'X-Contentful-Signature': mac(secret, text),
        'X-Contentful-Signed-Headers': names,
        'X-Contentful-Timestamp': `${at}000`,
        'X-Contentful-Topic': topic,
        'X-Contentful-Idempotency-Key': id,
      }
    },
    type: 'ContentManagement.Entry.publish',
    hasId: true,
    isTimed: true,
  },
  {
    ...plain('sanity', 'sanity-webhook-signature', hex, {
      body: json({ _type: 'article' }),
      type: 'article',
      hasId: true,
      isTimed: true,
    }),
    sign: (secret, { body, id, at }) => ({
      'idempotency-key': id,
      'sanity-webhook-signature': `t=${at}000,v1=${mac(secret, `${at}000.${body}`, 'base64url')}`,
    }),
  },
  {
    ...plain('ghost', 'X-Ghost-Signature', hex, {
      body: json({ post: { current: {}, previous: {} } }),
      type: 'post',
      isTimed: true,
    }),
    sign: (secret, { body, at }) => ({
      'X-Ghost-Signature': `sha256=${mac(secret, `${body}${at}000`)}, t=${at}000`,
    }),
  },
  plain('docusign', 'X-DocuSign-Signature-1', base64, {
    body: ({ id }) => {
      const event = { event: 'envelope-completed', retryCount: 0, configurationId: 10_485 }
      const data = { envelopeId: id }
      return JSON.stringify({ ...event, generatedDateTime: '2021-11-16T00:49:20Z', data })
    },
    type: 'envelope-completed',
    hasId: true,
    eventId: ({ id }) => `envelope-completed:${id}:10485:2021-11-16T00:49:20Z`,
    stored: 200,
  }),
  plain('dropbox', 'X-Dropbox-Signature', hex, {
    body: json({ list_folder: { accounts: ['dbid:AAH4f99T0taONIb'] }, delta: { users: [12] } }),
    type: 'list_folder',
    stored: 200,
  }),
]

/** Every preset, one sender each. */
export const PRESET_SENDERS: readonly PresetSender[] = [
  ...OWN,
  ...CODE,
  ...SHOPS,
  ...CHAT,
  ...OPERATIONS,
  ...PEOPLE,
]

/** The sender with a scheme. */
export function presetSender(scheme: string): PresetSender {
  const found = PRESET_SENDERS.find((one) => one.scheme === scheme)
  if (found === undefined) throw new Error(`there is no sender ${scheme}`)
  return found
}

let made = 0

/** A new delivery of a sender to an address, not signed yet. */
export function sendingTo(url: string, sender: PresetSender, secret: string, at = now()): Sending {
  const stamp = { id: `delivery-${made++}`, at, url }
  return { ...stamp, body: sender.body(stamp, secret) }
}
