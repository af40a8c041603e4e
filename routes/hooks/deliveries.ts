import Type from 'typebox'
import { TrustMode } from '../../db/hooks/providers.ts'
import { Timestamp } from '../../db/sql-file.ts'
import { badRequest, Fault, NO_ROUTE } from '../../kernel/fault.ts'
import type { BodyResult } from '../../kernel/http/body.ts'
import type { Context } from '../../kernel/http/context.ts'
import { jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { createRouter, noRoute, type Fallback, type Route } from '../../kernel/http/router.ts'
import type { Operation } from '../../kernel/openapi.ts'
import {
  overloaded,
  rejected,
  rejectedPath,
  startGeneric,
  startSigned,
  type DeliveryHead,
  type Receiver,
  type Receiving,
} from '../../services/hooks/deliveries/deliveries.ts'
import type { PlainAnswer } from '../../services/hooks/schemes/handshakes.ts'
import { schemeOf } from '../../services/hooks/schemes/schemes.ts'
import { mayDeliver } from '../../services/hooks/schemes/secrets.ts'
import type { HooksRoutes } from './kit.ts'

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
  takesDeliveries: true,
  tag: 'Receivers',
  needsToken: false,
  body: Type.Unknown({ description: 'The delivery, kept byte for byte' }),
  replies: STORED,
  refusals: [400, 403, 404, 413, 503],
} as const satisfies Partial<Operation>

type Described = Omit<Operation, 'handle'>
type Receivers = Receiver & Pick<HooksRoutes, 'maxBody'>
type Unread = BodyResult & { ok: false }

const name = Type.String({ pattern: '^[a-z0-9][a-z0-9_-]{0,63}$' })

const BY_NAME: Described = {
  ...RECEIVER,
  path: '/webhooks/generic/:name',
  id: 'receiveGeneric',
  summary: 'Deliver an event of a sender that an operator has made.',
  description:
    'With its token as Authorization: Bearer, X-Webhook-Token, X-Gitlab-Token, ?token= or the ' +
    "password of Authorization: Basic; or signed by the provider's scheme, such as github or " +
    'standard. X-Event-Type is its type, unless the scheme has it elsewhere. An operator may ' +
    'choose further methods, and another answer to a stored event: its status, and a body that is ' +
    'text/plain, application/json or application/xml.',
  params: { name },
  query: Type.Object({ token: Type.Optional(Type.String()) }),
  bodyTypes: ['application/json', '*/*'],
  replies: { ...HANDSHAKES, ...STORED },
  refusals: [...RECEIVER.refusals, 401],
}

const BY_PATH: Described = {
  ...RECEIVER,
  path: '/webhooks/generic/:name/:token',
  id: 'receiveGenericByPath',
  summary: 'Deliver an event of a sender that can only be given a URL.',
  params: { name, token: Type.String() },
  bodyTypes: ['application/json', '*/*'],
  replies: { ...HANDSHAKES, ...STORED },
  refusals: [...RECEIVER.refusals, 401],
}

const SIGNED: Described = {
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

/** `POST /webhooks/…` (hooks.md section 4): the checks in the order of decisions.md section 3. */
export function deliveryRoutes(options: HooksRoutes): readonly Operation[] {
  const receiver = receiverOf(options)
  return [
    ...genericRoutes(receiver),
    { ...SIGNED, handle: (context) => receiveSigned(receiver, context) },
  ]
}

function receiverOf({ hooks, maxBody, freshnessSeconds, baseUrl }: HooksRoutes): Receivers {
  return { ...hooks, maxBody, freshnessSeconds, baseUrl }
}

function genericRoutes(receiver: Receivers): readonly Operation[] {
  const handle = (context: Context) => receiveGeneric(receiver, context)
  return [
    { ...BY_NAME, handle },
    { ...BY_PATH, handle },
  ]
}

/**
 * A request below `/webhooks/` that no route takes is answered as everywhere, and kept among the
 * rejections: it may be a delivery to a mistyped address. A generic receiver gets other methods than
 * POST where an operator has chosen some, and a GET or HEAD by which its sender checks the address.
 */
export function hooksFallback(app: HooksRoutes): Fallback {
  const { hooks } = app
  const findGeneric = createRouter(genericRoutes(receiverOf(app)))
  const unknownPath: Route = {
    method: 'POST',
    path: '(none)',
    access: 'open',
    handle(context) {
      throw rejectedPath(hooks, context, NO_ROUTE)
    },
  }

  function getsMethod(name: string | undefined, method: string): boolean {
    const row = hooks.registry.provider(`generic:${name}`)
    if (row === undefined) return false
    if (row.methods !== null) return true
    const isCheck = method === 'GET' || method === 'HEAD'
    return isCheck && mayDeliver(row, hooks.secrets) && schemeOf(row)?.handshake !== undefined
  }

  return (path, allow, method) => {
    if (allow === undefined && path.startsWith('/webhooks/')) {
      return { kind: 'route', route: unknownPath, params: {} }
    }
    const generic = findGeneric('POST', path)
    const isReceived = generic.kind === 'route' && getsMethod(generic.params['name'], method)
    return isReceived ? generic : noRoute(path, allow, method)
  }
}

async function receiveSigned(receiver: Receivers, context: Context) {
  const head = headOf(context, context.params['provider'] ?? '')
  return receive(receiver, context, head, startSigned(receiver, head))
}

async function receiveGeneric(receiver: Receivers, context: Context) {
  const { name = '', token } = context.params
  const head = headOf(context, `generic:${name}`)
  return receive(receiver, context, head, startGeneric(receiver, head, token))
}

/** Reads the body, verifies and stores it; a body that is too large is refused first. */
async function receive(
  receiver: Receivers,
  context: Context,
  head: DeliveryHead,
  { update, finish }: Receiving,
) {
  const body = await context.body(receiver.maxBody(), update)
  if (!body.ok) throw unreadBody(receiver, head, body)
  const received = await finish(body.bytes)
  if (received.kind === 'answered') return plainReply(received.answer)
  const { status, saved } = received
  if (status === 204) return { status, headers: {}, body: null }
  const { id, trust_mode, verified, received_at } = saved
  return jsonReply({ id, provider: head.provider, trust_mode, verified, received_at }, status)
}

/** What strangers or operators chose is sent as text or data alone, never as a page of this origin. */
function plainReply({ status, type, body, headers }: PlainAnswer): Reply {
  return {
    status,
    headers: {
      ...(type !== undefined && { 'content-type': type }),
      'x-content-type-options': 'nosniff',
      'content-security-policy': 'sandbox',
      'cache-control': 'no-store',
      ...headers,
    },
    body: body ?? null,
  }
}

function unreadBody(receiver: Receivers, head: DeliveryHead, { reason }: Unread) {
  if (reason === 'overloaded') return overloaded()
  if (reason === 'aborted') return badRequest('The body did not arrive whole.')
  const message = `The body exceeds the limit of ${receiver.maxBody()} bytes.`
  const fault = new Fault(413, 'BODY_TOO_LARGE', message)
  return rejected(receiver, head, fault, 'body too large')
}

function headOf(context: Context, provider: string): DeliveryHead {
  return { ...context, provider }
}
