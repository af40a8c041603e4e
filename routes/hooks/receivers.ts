import type { BodyResult } from '../../kernel/http/body.ts'
import type { Context } from '../../kernel/http/context.ts'
import { unavailable, type FaultValue } from '../../kernel/fault.ts'
import type { Operation } from '../../kernel/openapi.ts'
import { jsonReply, type Reply } from '../../kernel/http/reply.ts'
import { isGenericName } from '../../services/hooks/providers.ts'
import {
  startGeneric,
  startSigned,
  type DeliveryHead,
  type Outcome,
  type Receiving,
} from '../../services/hooks/receive.ts'
import { mayDeliver } from '../../services/hooks/sender-keys.ts'
import { isSignedProvider } from '../../services/hooks/signing-secrets.ts'
import { hooksFault, notFound } from './faults.ts'
import { GENERIC, GENERIC_BY_PATH, SIGNED } from './receiver-operations.ts'
import type { HooksRoutes } from './options.ts'

/** `POST /webhooks/…` (hooks.md section 4): the checks in the order of decisions.md section 3. */
export function receiverRoutes(options: HooksRoutes): readonly Operation[] {
  const { hooks } = options

  /** Reads the body and says what came of the delivery; a body that is too large is refused first. */
  async function receive(context: Context, provider: string, receiving: Receiving): Promise<Reply> {
    const body = await context.body(options.maxBody(), receiving.update)
    if (!body.ok) return refuseBody(context, provider, body)
    return answer(context, provider, await receiving.finish(body.bytes))
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
    fault: FaultValue,
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
    if (!sender.enabled) return refuse(context, provider, disabled(provider), 'disabled')
    const head = { ...headOf(context), provider }
    const receiving = startSigned(hooks, head, secrets, options.freshnessSeconds())
    return receive(context, provider, receiving)
  }

  async function generic(context: Context): Promise<Reply> {
    const name = context.params['name'] ?? ''
    const provider = `generic:${name}`
    const sender = isGenericName(name) ? hooks.registry.sender(provider) : undefined
    if (sender === undefined) return hooksFault(UNKNOWN_GENERIC, context)
    if (!mayDeliver(sender, hooks.secrets)) {
      return refuse(context, provider, disabled(provider), 'disabled')
    }
    const head = { ...headOf(context), provider }
    const { token } = context.params
    const receiving = startGeneric(hooks, head, sender, token, options.freshnessSeconds())
    return receive(context, provider, receiving)
  }

  return [
    { ...GENERIC, handle: generic },
    { ...GENERIC_BY_PATH, handle: generic },
    { ...SIGNED, handle: signed },
  ]
}

function headOf({ headers, search, client, receivedAt }: Context): Omit<DeliveryHead, 'provider'> {
  return { headers, search, client, receivedAt }
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

function disabled(provider: string): FaultValue {
  return {
    status: 403,
    code: 'FORBIDDEN',
    detail: `The provider ${provider} is disabled; enable it on the providers page.`,
  }
}

function tooLarge(limit: number): FaultValue {
  return {
    status: 413,
    code: 'BODY_TOO_LARGE',
    detail: `The body exceeds the limit of ${limit} bytes.`,
  }
}
