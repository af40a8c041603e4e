import Type from 'typebox'
import { TrustMode } from '../../db/hooks/rows.ts'
import { Timestamp } from '../../db/rows.ts'
import type { Operation } from '../../kernel/openapi.ts'

/** hooks.md section 2, IngestAck. */
export const IngestAck = Type.Object({
  id: Type.Integer({ description: "The event's id; of a repeated delivery, the first event's" }),
  provider: Type.String(),
  trust_mode: TrustMode,
  verified: Type.Boolean(),
  received_at: Timestamp,
})

const Challenge = Type.Object({ challenge: Type.Unknown() })
const STORED = { 202: { description: 'Stored; sent once it is committed', schema: IngestAck } }

/** What all receivers have in common; who may send is told by the delivery itself. */
const RECEIVER = {
  method: 'POST',
  access: 'open',
  tag: 'Receivers',
  needsToken: false,
  body: Type.Unknown({ description: 'The delivery, kept byte for byte' }),
  replies: STORED,
  refusals: [400, 403, 404, 413, 503],
} as const satisfies Partial<Operation>

const name = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$' })

/** `POST /webhooks/{provider}` (hooks.md section 4). */
export const SIGNED: Omit<Operation, 'handle'> = {
  ...RECEIVER,
  path: '/webhooks/:provider',
  id: 'receiveSigned',
  summary: 'Deliver an event that is signed by its sender.',
  description:
    'code_host: X-Hub-Signature-256 or X-CodeHost-Signature-256; payments: Stripe-Signature or ' +
    'Payments-Signature; chat: X-Slack-Signature or X-Chat-Signature, with its timestamp.',
  params: { provider: Type.Enum(['code_host', 'payments', 'chat']) },
  bodyTypes: ['application/json', 'application/x-www-form-urlencoded'],
  replies: {
    200: { description: "The chat service's handshake, sent back", schema: Challenge },
    ...STORED,
  },
  refusals: [...RECEIVER.refusals, 401],
}

/** `POST /webhooks/generic/{name}` (hooks.md section 4). */
export const GENERIC: Omit<Operation, 'handle'> = {
  ...RECEIVER,
  path: '/webhooks/generic/:name',
  id: 'receiveGeneric',
  summary: 'Deliver an event of a sender that an operator has made.',
  description:
    'With its token as Authorization: Bearer, as X-Webhook-Token or as ?token=; or signed by ' +
    'Standard Webhooks, where the sender was made so. X-Event-Type is its type.',
  params: { name },
  query: Type.Object({ token: Type.Optional(Type.String()) }),
  bodyTypes: ['application/json', '*/*'],
}

/** The same for senders that can only be given a URL. */
export const GENERIC_BY_PATH: Omit<Operation, 'handle'> = {
  ...RECEIVER,
  path: '/webhooks/generic/:name/:token',
  id: 'receiveGenericByPath',
  summary: 'Deliver an event of a sender that can only be given a URL.',
  params: { name, token: Type.String() },
  bodyTypes: ['application/json', '*/*'],
}
