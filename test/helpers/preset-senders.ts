import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { now } from './hooks.ts'
import { CHAT, OPERATIONS, PEOPLE } from './preset-services.ts'
import {
  mac,
  ed25519,
  hexKey,
  jwt,
  sha256,
  USUAL,
  signed,
  JSON_BODY,
  plain,
  hex,
  sha256Hex,
  base64,
  standard,
  token,
  json,
  type PresetSender,
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
        ...{ pspReference: id, merchantAccountCode: 'Castle', merchantReference: 'toll', amount },
        ...{ eventCode: 'AUTHORISATION', success: 'true' },
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
