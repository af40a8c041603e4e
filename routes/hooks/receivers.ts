import type { BodyResult } from '../../kernel/body.ts'
import type { Context } from '../../kernel/context.ts'
import { unavailable, type Fault } from '../../kernel/fault.ts'
import type { Operation } from '../../kernel/operation.ts'
import { jsonReply, type Reply } from '../../kernel/reply.ts'
import { isGenericName } from '../../services/hooks/providers.ts'
import {
  receiveGeneric,
  receiveSigned,
  type Delivery,
  type Outcome,
} from '../../services/hooks/receive.ts'
import { mayDeliver } from '../../services/hooks/sender-keys.ts'
import { isSignedProvider } from '../../services/hooks/signing-secrets.ts'
import { hooksFault, notFound } from './faults.ts'
import { GENERIC, GENERIC_BY_PATH, SIGNED } from './receiver-operations.ts'
import type { HooksRoutes } from './options.ts'

/** A delivery that was read whole, or the refusal that came before. */
type Read = { readonly delivery: Delivery } | { readonly reply: Reply }

/** `POST /webhooks/…` (hooks.md section 4): the checks in the order of decisions.md section 3. */
export function receiverRoutes(options: HooksRoutes): readonly Operation[] {
  const { hooks } = options

  /** Refuses before the body is read: unknown, disabled, too large. */
  async function readDelivery(context: Context, provider: string, enabled: boolean): Promise<Read> {
    if (!enabled) return { reply: refuse(context, provider, disabled(provider), 'disabled') }
    const body = await context.body(options.maxBody())
    if (!body.ok) return { reply: refuseBody(context, provider, body) }
    const { headers, search, client, receivedAt } = context
    return { delivery: { provider, headers, search, client, receivedAt, body: body.bytes } }
  }

  function refuseBody(context: Context, provider: string, body: BodyResult & { ok: false }): Reply {
    if (body.reason === 'too-large')
      return refuse(context, provider, tooLarge(options.maxBody()), 'body too large')
    if (body.reason === 'overloaded') return hooksFault(OVERLOADED, context)
    return hooksFault(
      { status: 400, code: 'BAD_REQUEST', detail: 'The body did not arrive whole.' },
      context,
    )
  }

  function refuse(
    context: Context,
    provider: string,
    fault: Fault,
    reason: string,
    wrongSecret = false,
  ): Reply {
    const { status } = fault
    if (status === 401 || status === 403 || status === 413) {
      hooks.rejections.record({
        provider,
        status,
        client: context.client,
        reason,
        at: context.receivedAt,
        wrongSecret,
      })
    }
    return hooksFault(fault, context)
  }

  function answer(context: Context, provider: string, outcome: Outcome): Reply {
    switch (outcome.kind) {
      case 'stored': {
        const { id, trust_mode, verified, received_at } = outcome.saved
        return jsonReply({ id, provider, trust_mode, verified, received_at }, 202)
      }
      case 'handshake':
        return jsonReply({ challenge: outcome.challenge })
      case 'overloaded':
        return hooksFault(OVERLOADED, context)
      case 'refused': {
        const code = { 400: 'BAD_REQUEST', 401: 'UNAUTHORIZED', 403: 'FORBIDDEN' }[outcome.status]
        return refuse(
          context,
          provider,
          { status: outcome.status, code, detail: outcome.detail },
          outcome.reason,
          true,
        )
      }
    }
  }

  async function signed(context: Context): Promise<Reply> {
    const provider = context.params['provider'] ?? ''
    const secrets = isSignedProvider(provider) ? hooks.secrets.of(provider) : undefined
    const sender = hooks.registry.sender(provider)
    if (!isSignedProvider(provider) || secrets === undefined || sender === undefined) {
      return hooksFault(UNKNOWN_SIGNED, context)
    }
    const read = await readDelivery(context, provider, sender.enabled)
    if ('reply' in read) return read.reply
    const freshness = options.freshnessSeconds()
    const delivery = { ...read.delivery, provider }
    const outcome = await receiveSigned(hooks, delivery, secrets, freshness)
    return answer(context, provider, outcome)
  }

  async function generic(context: Context): Promise<Reply> {
    const name = context.params['name'] ?? ''
    const provider = `generic:${name}`
    const sender = isGenericName(name) ? hooks.registry.sender(provider) : undefined
    if (sender === undefined) return hooksFault(UNKNOWN_GENERIC, context)
    const read = await readDelivery(context, provider, mayDeliver(sender, hooks.secrets))
    if ('reply' in read) return read.reply
    const outcome = await receiveGeneric(
      hooks,
      read.delivery,
      sender,
      context.params['token'],
      options.freshnessSeconds(),
    )
    return answer(context, provider, outcome)
  }

  return [
    { ...GENERIC, handle: generic },
    { ...GENERIC_BY_PATH, handle: generic },
    { ...SIGNED, handle: signed },
  ]
}

const UNKNOWN_SIGNED = notFound(
  'No signed provider is configured under this name; set its secret to configure it.',
)
const UNKNOWN_GENERIC = notFound(
  'There is no generic provider under this name; an operator creates it first.',
)
const OVERLOADED = unavailable(
  'More is arriving than can be stored; nothing was stored. Try again shortly.',
)

function disabled(provider: string): Fault {
  return {
    status: 403,
    code: 'FORBIDDEN',
    detail: `The provider ${provider} is disabled; enable it on the providers page.`,
  }
}

function tooLarge(limit: number): Fault {
  return {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: `The body exceeds the limit of ${limit} bytes.`,
  }
}
