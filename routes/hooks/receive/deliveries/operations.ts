import * as Type from '../../../../kernel/schema.ts'
import { TrustMode } from '../../../../db/hooks/receive/providers.ts'
import { Timestamp } from '../../../../db/sql-file.ts'
import type { Operation } from '../../../../kernel/openapi.ts'

// What the API's document says of the receivers.

/** hooks.md section 2, IngestAck. */
export const IngestAck = Type.Object({
  id: Type.Integer({ description: "The event's id; of a repeated delivery, the first event's" }),
  provider: Type.String(),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  received_at: Timestamp,
})

const Challenge = Type.Object({ challenge: Type.Unknown() })

/** A scheme's check of its address, or the status that it asks for. */
const HANDSHAKES = {
  200: {
    description: 'A check of the address, or stored, by the scheme',
    schema: Type.Object({}),
  },
  204: { description: 'A check of the address, or stored, by the scheme' },
}
const STORED = { 202: { description: 'Stored; sent once it is committed', schema: IngestAck } }

/** What all receivers have in common; each delivery shows by itself who sends it. */
const RECEIVER = {
  method: 'POST',
  access: 'open',
  kind: 'delivery',
  tag: 'Receivers',
  needsToken: false,
  body: Type.Unknown({ description: 'The delivery, kept byte for byte' }),
  replies: STORED,
  refusals: [400, 403, 404, 413, 503],
} as const satisfies Partial<Operation>

type Described = Omit<Operation, 'handle'>

const name = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$' })

export const BY_NAME: Described = {
  ...RECEIVER,
  path: '/webhooks/generic/:name',
  id: 'receiveGeneric',
  summary: 'Deliver an event of a sender that an operator has made.',
  description:
    'With its token as Authorization: Bearer or Token, X-Webhook-Token, X-Gitlab-Token, ' +
    'X-API-Key, X-Auth-Token, ?token=, the password of Authorization: Basic or Authorization ' +
    "alone; or signed by the provider's scheme, such as github or " +
    'standard. X-Event-Type is its type, unless the scheme has it elsewhere. An operator may ' +
    'choose further methods, and another answer to a stored event: its status, and a body that is ' +
    'text/plain, application/json or application/xml.',
  params: { name },
  query: Type.Object({ token: Type.Optional(Type.String()) }),
  bodyTypes: ['application/json', '*/*'],
  replies: { ...HANDSHAKES, ...STORED },
  refusals: [...RECEIVER.refusals, 401, 405],
}

export const BY_PATH: Described = {
  ...RECEIVER,
  path: '/webhooks/generic/:name/:token',
  id: 'receiveGenericByPath',
  summary: 'Deliver an event of a sender that can only be given a URL.',
  params: { name, token: Type.String() },
  bodyTypes: ['application/json', '*/*'],
  replies: { ...HANDSHAKES, ...STORED },
  refusals: [...RECEIVER.refusals, 401, 405],
}

export const SIGNED: Described = {
  ...RECEIVER,
  path: '/webhooks/:provider',
  id: 'receiveSigned',
  summary: 'Deliver an event that is signed by its sender.',
  description:
    'code_host: X-Hub-Signature-256 or X-CodeHost-Signature-256; payments: ' +
    'Stripe-Signature or Payments-Signature; chat: X-Slack-Signature or ' +
    'X-Chat-Signature, with its timestamp.',
  params: { provider: Type.Enum(['code_host', 'payments', 'chat']) },
  bodyTypes: ['application/json', 'application/x-www-form-urlencoded'],
  replies: {
    200: { description: "The chat service's handshake, sent back", schema: Challenge },
    ...STORED,
  },
  refusals: [...RECEIVER.refusals, 401],
}
