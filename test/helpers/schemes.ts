import { createHmac, generateKeyPairSync, randomBytes, sign, type KeyObject } from 'node:crypto'
import { sign as signGithub } from '@octokit/webhooks-methods'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { keepSecret, secret as makeSecret } from './secrets.ts'

/** When a delivery is signed, in Unix seconds, and under which id. */
export type Stamp = { readonly id: string; readonly at: number }

type Headers = Readonly<Record<string, string>>

/** A sender of one scheme, as it is in the world: its secret, and how it signs. */
export type Sender = {
  readonly scheme: string
  /** The flags of `provider add` beside `--scheme`. */
  readonly flags?: readonly string[]
  readonly makeSecret: () => string
  /** The headers of a delivery: those that prove it, and those that say what it is. */
  readonly headers: (secret: string, body: string, stamp: Stamp) => Promise<Headers> | Headers
  readonly body: (stamp: Stamp) => string
  /** What the log shows of it; the id is the stamp's own unless it is said. */
  readonly type: string | null
  readonly id?: string
  /** The header of the signature. */
  readonly signature: string
  readonly encoding: BufferEncoding
  /** True where the time is signed, in a header or in the body. */
  readonly isTimed: boolean
  readonly detail?: string
  /** The status of a delivery with a wrong signature, 403 when absent. */
  readonly refusal?: 401
  /** The status of a stored one, 202 when absent; 204 has no body. */
  readonly answer?: 200 | 204
}

const text = (): string => makeSecret('scheme')

function digest(secret: string, signed: string, encoding: 'hex' | 'base64' | 'base64url') {
  return createHmac('sha256', secret).update(signed).digest(encoding)
}

/** The private keys of public ones: a test signs as Discord does. */
const privateKeys = new Map<string, KeyObject>()

function makeKeyPair(): string {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)
  privateKeys.set(raw.toString('hex'), privateKey)
  return raw.toString('hex')
}

const PUSH = '{"ref": "refs/heads/main", "text": "Ünïcode, \\u001B and  spaces"}\n'

/** Every scheme that signs. */
export const SENDERS: readonly Sender[] = [
  {
    scheme: 'github',
    makeSecret: text,
    headers: async (secret, body, { id }) => ({
      'X-Hub-Signature-256': await signGithub(secret, body),
      'X-GitHub-Event': 'push',
      'X-GitHub-Delivery': id,
    }),
    body: () => PUSH,
    type: 'push',
    signature: 'X-Hub-Signature-256',
    encoding: 'hex',
    isTimed: false,
  },
  {
    scheme: 'gitea',
    makeSecret: text,
    headers: (secret, body, { id }) => ({
      'X-Gitea-Signature': digest(secret, body, 'hex'),
      // A real delivery has these, too; they are another scheme's.
      'X-Hub-Signature-256': `sha256=${digest(secret, body, 'hex')}`,
      'X-GitHub-Event': 'something else',
      'X-Gitea-Event': 'push',
      'X-Gitea-Delivery': id,
    }),
    body: () => PUSH,
    type: 'push',
    signature: 'X-Gitea-Signature',
    encoding: 'hex',
    isTimed: false,
  },
  {
    scheme: 'stripe',
    makeSecret: () => keepSecret('scheme', `whsec_${randomBytes(24).toString('base64')}`),
    headers: (secret, payload, { at: timestamp }) => ({
      'Stripe-Signature': Stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp }),
    }),
    body: ({ id }) => JSON.stringify({ id, object: 'event', type: 'charge.paid' }, null, 2),
    type: 'charge.paid',
    signature: 'Stripe-Signature',
    encoding: 'hex',
    isTimed: true,
  },
  {
    scheme: 'slack',
    makeSecret: text,
    headers: (secret, body, { at }) => ({
      'X-Slack-Signature': `v0=${digest(secret, `v0:${at}:${body}`, 'hex')}`,
      'X-Slack-Request-Timestamp': String(at),
    }),
    body: ({ id }) => JSON.stringify({ event_id: id, event: { type: 'app_mention' } }),
    type: 'app_mention',
    signature: 'X-Slack-Signature',
    encoding: 'hex',
    isTimed: true,
  },
  {
    scheme: 'shopify',
    makeSecret: text,
    headers: (secret, body, { id }) => ({
      'X-Shopify-Hmac-Sha256': digest(secret, body, 'base64'),
      'X-Shopify-Topic': 'orders/create',
      'X-Shopify-Webhook-Id': id,
      'X-Shopify-Event-Id': 'of several webhooks',
    }),
    body: () => '{"name": "#1042", "total_price": "42.00"}',
    type: 'orders/create',
    signature: 'X-Shopify-Hmac-Sha256',
    encoding: 'base64',
    isTimed: false,
  },
  {
    scheme: 'linear',
    makeSecret: text,
    headers: (secret, body, { id }) => ({
      'Linear-Signature': digest(secret, body, 'hex'),
      'Linear-Event': 'Issue',
      'Linear-Delivery': id,
    }),
    body: ({ at }) => JSON.stringify({ action: 'create', webhookTimestamp: at * 1_000 + 17 }),
    answer: 200,
    type: 'Issue',
    signature: 'Linear-Signature',
    encoding: 'hex',
    isTimed: true,
  },
  ...['webhook', 'svix'].map((name): Sender => ({
    scheme: 'standard',
    makeSecret: () => keepSecret('scheme', `whsec_${randomBytes(32).toString('base64')}`),
    headers: (secret, body, { id, at }) => ({
      [`${name}-id`]: id,
      [`${name}-timestamp`]: String(at),
      [`${name}-signature`]: new Webhook(secret).sign(id, new Date(at * 1_000), body),
      'X-Event-Type': 'invoice.paid',
    }),
    body: () => '{"data": {"amount": 42}}',
    type: 'invoice.paid',
    signature: `${name}-signature`,
    encoding: 'base64',
    isTimed: true,
  })),
  {
    scheme: 'discord',
    makeSecret: makeKeyPair,
    headers(secret, body, { at }) {
      const key = privateKeys.get(secret)
      if (key === undefined) throw new Error('another private key')
      return {
        'X-Signature-Ed25519': sign(null, Buffer.from(`${at}${body}`), key).toString('hex'),
        'X-Signature-Timestamp': String(at),
      }
    },
    body: ({ id }) => JSON.stringify({ id, type: 1, event: { type: 'ENTITLEMENT_CREATE' } }),
    type: 'ENTITLEMENT_CREATE',
    signature: 'X-Signature-Ed25519',
    encoding: 'hex',
    isTimed: true,
    detail: 'ed25519 ok',
    refusal: 401,
    answer: 204,
  },
  {
    scheme: 'hmac',
    flags: ['--header', 'X-Check', '--encoding', 'base64url', '--algorithm', 'sha512'],
    makeSecret: text,
    headers: (secret, body) => ({
      'X-Check': createHmac('sha512', secret).update(body).digest('base64url'),
    }),
    body: ({ id }) => JSON.stringify({ id }),
    type: null,
    id: 'sha256:',
    signature: 'X-Check',
    encoding: 'base64url',
    isTimed: false,
    detail: 'hmac-sha512 ok',
  },
  {
    scheme: 'hmac',
    flags: [
      ...['--header', 'X-Zm-Signature', '--prefix', 'v0=', '--timestamp-header', 'X-Zm-Time'],
      ...['--signed-text', 'v0:{timestamp}:{body}', '--event-type-json', 'event.name'],
      ...['--id-header', 'X-Zm-Id'],
    ],
    makeSecret: text,
    headers: (secret, body, { id, at }) => ({
      'X-Zm-Signature': `v0=${digest(secret, `v0:${at}:${body}`, 'hex')}`,
      'X-Zm-Time': String(at),
      'X-Zm-Id': id,
    }),
    body: () => '{"event": {"name": "meeting.ended"}}',
    type: 'meeting.ended',
    signature: 'X-Zm-Signature',
    encoding: 'hex',
    isTimed: true,
  },
  {
    scheme: 'hmac',
    flags: [
      ...[
        '--header',
        'X-Own-Signature',
        '--encoding',
        'base64',
        '--timestamp-header',
        'X-Own-Time',
      ],
      ...['--signed-text', '{id}.{timestamp}.{body}', '--event-type-header', 'X-Own-Type'],
      ...['--id-header', 'X-Own-Id'],
    ],
    makeSecret: text,
    headers: (secret, body, { id, at }) => ({
      'X-Own-Signature': digest(secret, `${id}.${at}.${body}`, 'base64'),
      'X-Own-Time': String(at),
      'X-Own-Type': 'thing.done',
      'X-Own-Id': id,
    }),
    body: () => '{"thing": 1}',
    type: 'thing.done',
    signature: 'X-Own-Signature',
    encoding: 'base64',
    isTimed: true,
  },
]
