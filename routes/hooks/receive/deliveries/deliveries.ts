import { badRequest, Fault, NO_ROUTE } from '../../../../kernel/fault.ts'
import type { BodyResult } from '../../../../kernel/http/body.ts'
import type { Context } from '../../../../kernel/http/context.ts'
import { jsonReply, type Reply } from '../../../../kernel/http/reply.ts'
import {
  createRouter,
  noRoute,
  type Fallback,
  type Match,
  type Route,
} from '../../../../kernel/http/router.ts'
import type { Operation } from '../../../../kernel/openapi.ts'
import type {
  DeliveryHead,
  Receiver,
  Receiving,
} from '../../../../services/hooks/receive/deliveries/receiving.ts'
import {
  startGeneric,
  startSigned,
} from '../../../../services/hooks/receive/deliveries/deliveries.ts'
import { overloaded } from '../../../../services/hooks/receive/deliveries/refusals.ts'
import { rejected, rejectedPath } from '../../../../services/hooks/receive/deliveries/rejected.ts'
import type { PlainAnswer } from '../../../../services/hooks/receive/schemes/handshakes.ts'
import { schemeOf } from '../../../../services/hooks/receive/schemes/schemes.ts'
import { mayDeliver } from '../../../../services/hooks/receive/schemes/secrets.ts'
import type { HooksRoutes } from '../../kit.ts'
import { BY_NAME, BY_PATH, SIGNED } from './operations.ts'

type Receivers = Receiver & Pick<HooksRoutes, 'maxBody'>
type Unread = BodyResult & { ok: false }

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
 * A request below `/webhooks/` that no route takes is answered as everywhere. It is also kept among
 * the rejections: it may be a delivery to a mistyped address. A generic receiver gets methods that an
 * operator chose, and the GET or HEAD by which its sender checks the address. A slash at the end of
 * a receiver's path does not count.
 */
export function hooksFallback(app: HooksRoutes): Fallback {
  const { hooks } = app
  const findGeneric = createRouter(genericRoutes(receiverOf(app)))
  const findReceiver = createRouter(deliveryRoutes(app), answer)
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

  function answer(path: string, allow: string | undefined, method: string): Match {
    if (allow === undefined && path.startsWith('/webhooks/')) {
      if (/^\/webhooks\/.*[^/]\/$/.test(path)) return findReceiver(method, path.slice(0, -1))
      return { kind: 'route', route: unknownPath, params: {} }
    }
    const generic = findGeneric('POST', path)
    const isReceived = generic.kind === 'route' && getsMethod(generic.params['name'], method)
    return isReceived ? generic : noRoute(path, allow, method)
  }

  return answer
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

/** Sends what a stranger or an operator chose as text or data, never as a page of this origin. */
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
