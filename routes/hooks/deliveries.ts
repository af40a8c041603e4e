import Type from 'typebox'
import { TrustMode } from '../../db/hooks/providers.ts'
import { Timestamp } from '../../db/sql-file.ts'
import { badRequest, Fault } from '../../kernel/fault.ts'
import type { BodyResult } from '../../kernel/http/body.ts'
import type { Context } from '../../kernel/http/context.ts'
import { jsonReply, type Reply } from '../../kernel/http/reply.ts'
import type { Operation } from '../../kernel/openapi.ts'
import {
  overloaded,
  rejected,
  startGeneric,
  startSigned,
  type DeliveryHead,
  type Receiving,
} from '../../services/hooks/deliveries.ts'
import type { HooksRoutes } from './endpoint.ts'

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

/** What all receivers have in common; each delivery shows by itself who sends it. */
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

/** `POST /webhooks/…` (hooks.md section 4): the checks in the order of decisions.md section 3. */
export function deliveryRoutes(options: HooksRoutes): readonly Operation[] {
  const { hooks, maxBody, freshnessSeconds } = options
  const receiver = { ...hooks, freshnessSeconds }

  /** Reads the body, verifies and stores it; a body that is too large is refused first. */
  async function receive(
    context: Context,
    head: DeliveryHead,
    { update, finish }: Receiving,
  ): Promise<Reply> {
    const body = await context.body(maxBody(), update)
    if (!body.ok) throw unreadBody(head, body.reason)
    const received = await finish(body.bytes)
    if (received.kind === 'handshake') return jsonReply({ challenge: received.challenge })
    const { id, trust_mode, verified, received_at } = received.saved
    return jsonReply({ id, provider: head.provider, trust_mode, verified, received_at }, 202)
  }

  function unreadBody(head: DeliveryHead, reason: (BodyResult & { ok: false })['reason']): Fault {
    if (reason === 'overloaded') return overloaded()
    if (reason === 'aborted') return badRequest('The body did not arrive whole.')
    const message = `The body exceeds the limit of ${maxBody()} bytes.`
    const fault = new Fault(413, 'BODY_TOO_LARGE', message)
    return rejected(receiver, head, fault, 'body too large')
  }

  async function signed(context: Context): Promise<Reply> {
    const head = headOf(context, context.params['provider'] ?? '')
    return receive(context, head, startSigned(receiver, head))
  }

  async function generic(context: Context): Promise<Reply> {
    const { name = '', token } = context.params
    const head = headOf(context, `generic:${name}`)
    return receive(context, head, startGeneric(receiver, head, token))
  }

  return [
    {
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
      handle: generic,
    },
    {
      ...RECEIVER,
      path: '/webhooks/generic/:name/:token',
      id: 'receiveGenericByPath',
      summary: 'Deliver an event of a sender that can only be given a URL.',
      params: { name, token: Type.String() },
      bodyTypes: ['application/json', '*/*'],
      handle: generic,
    },
    {
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
      handle: signed,
    },
  ]
}

function headOf({ headers, search, client, receivedAt }: Context, provider: string): DeliveryHead {
  return { provider, headers, search, client, receivedAt }
}
