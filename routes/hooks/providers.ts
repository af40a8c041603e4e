import { listProviders } from '../../db/hooks/providers.ts'
import { listRejectionTotals } from '../../db/hooks/rejections.ts'
import type { Provider, RejectionTotal } from '../../db/hooks/rows.ts'
import { providerCard } from '../../html/hooks/provider-card.ts'
import { createdFragment, providersPage } from '../../html/hooks/providers.ts'
import type { ProviderCard, ProvidersView } from '../../html/hooks/views.ts'
import type { Context } from '../../kernel/context.ts'
import type { Fault } from '../../kernel/fault.ts'
import { htmlReply, type Reply } from '../../kernel/reply.ts'
import type { Route } from '../../kernel/router.ts'
import { providerStatus } from '../../services/hooks/provider-status.ts'
import {
  createProvider,
  deleteProvider,
  rotateProvider,
  setProviderEnabled,
  type MadeProvider,
  type ProviderRefusal,
} from '../../services/hooks/providers.ts'
import { isSignedProvider } from '../../services/hooks/signing-secrets.ts'
import { recentSince } from '../../services/hooks/status.ts'
import { readForm, wantsFullPage } from '../form.ts'
import { hooksFault, notFound } from './faults.ts'
import type { HooksRoutes } from './options.ts'

const STATUS: Readonly<Record<ProviderRefusal['code'], number>> = {
  invalid_name: 422,
  reserved_name: 422,
  not_acknowledged: 422,
  taken: 409,
  not_found: 404,
  no_token: 404,
}

/** `/providers` and its form posts (hooks.md section 4, decisions.md section 3). */
export function providerRoutes({ hooks, baseUrl }: HooksRoutes): readonly Route[] {
  const { db, clock, random, registry, secrets } = hooks

  async function cards(): Promise<readonly ProviderCard[]> {
    const [providers, totals] = await Promise.all([
      listProviders(db, recentSince(clock.now())),
      listRejectionTotals(db),
    ])
    return providers.map((provider) => cardOf(provider, totals))
  }

  function cardOf(provider: Provider, totals: readonly RejectionTotal[]): ProviderCard {
    const status = providerStatus(provider, secrets)
    return {
      status,
      recent_count: provider.recent_count,
      last_event_at: provider.last_event_at,
      rejections: totals.find((total) => total.provider === provider.name) ?? null,
      url: status.path === null ? null : baseUrl() + status.path,
      variable: isSignedProvider(provider.name)
        ? `HOOKS_${provider.name.toUpperCase()}_SECRET`
        : null,
    }
  }

  async function view(changes: Partial<ProvidersView>): Promise<ProvidersView> {
    return { baseUrl: baseUrl(), made: null, refused: null, ...changes, cards: await cards() }
  }

  /** The fragment, or the page around it for a browser without script. */
  async function answer(
    context: Context,
    changes: Partial<ProvidersView>,
    status = 200,
  ): Promise<Reply> {
    const shown = await view(changes)
    return htmlReply(wantsFullPage(context) ? providersPage(shown) : createdFragment(shown), status)
  }

  async function made(context: Context, result: MadeProvider): Promise<Reply> {
    await registry.refresh()
    const url = `${baseUrl()}/webhooks/${result.name.replace(':', '/')}`
    return answer(context, { made: { ...result, url } })
  }

  async function create(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const name = form.get('name') ?? ''
    const trust_mode = form.get('trust_mode') ?? 'token'
    if (trust_mode !== 'token' && trust_mode !== 'open') {
      return hooksFault(unprocessable('trust_mode must be token or open.'), context)
    }
    const acknowledgeOpen = ['on', 'true', '1'].includes(form.get('acknowledge_open') ?? '')
    const result = await createProvider(db, random, {
      name,
      trust_mode,
      acknowledgeOpen,
      enabled: false,
    })
    if (!('code' in result)) return made(context, result)
    if (!wantsFullPage(context)) return hooksFault(refusalFault(result), context)
    return answer(
      context,
      { refused: { name, trust_mode, message: result.message } },
      STATUS[result.code],
    )
  }

  async function toggle(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const enabled = form.get('enabled')
    if (enabled !== 'true' && enabled !== 'false') {
      return hooksFault(unprocessable('enabled must be true or false.'), context)
    }
    const name = context.params['name'] ?? ''
    const refusal = await setProviderEnabled(db, name, enabled === 'true')
    if (refusal !== undefined) return hooksFault(refusalFault(refusal), context)
    await registry.refresh()
    if (wantsFullPage(context)) return answer(context, {})
    const card = (await cards()).find((candidate) => candidate.status.name === name)
    return card === undefined
      ? hooksFault(notFound('The provider was removed.'), context)
      : htmlReply(providerCard(card))
  }

  async function rotate(context: Context): Promise<Reply> {
    const result = await rotateProvider(db, random, context.params['name'] ?? '')
    return 'code' in result ? hooksFault(refusalFault(result), context) : made(context, result)
  }

  async function remove(context: Context): Promise<Reply> {
    const refusal = await deleteProvider(db, context.params['name'] ?? '')
    if (refusal !== undefined) return hooksFault(refusalFault(refusal), context)
    await registry.refresh()
    return answer(context, {})
  }

  return [
    {
      method: 'GET',
      path: '/providers',
      access: 'guarded',
      handle: async () => htmlReply(providersPage(await view({}))),
    },
    { method: 'POST', path: '/providers', access: 'guarded', handle: create },
    { method: 'POST', path: '/providers/:name/enabled', access: 'guarded', handle: toggle },
    { method: 'POST', path: '/providers/:name/rotate', access: 'guarded', handle: rotate },
    { method: 'POST', path: '/providers/:name/remove', access: 'guarded', handle: remove },
  ]
}

function unprocessable(detail: string): Fault {
  return { status: 422, code: 'UNPROCESSABLE', detail }
}

function refusalFault({ code, message }: ProviderRefusal): Fault {
  return { status: STATUS[code], code: code.toUpperCase(), detail: message }
}
