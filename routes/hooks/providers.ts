import { providerCard } from '../../html/hooks/provider-card.ts'
import { providersFragment, providersPage } from '../../html/hooks/providers.ts'
import type { ProvidersView, ProviderCard } from '../../html/hooks/views.ts'
import type { Context } from '../../kernel/http/context.ts'
import { Fault, type FaultValue } from '../../kernel/fault.ts'
import { htmlReply, type Reply } from '../../kernel/http/reply.ts'
import type { Route } from '../../kernel/http/router.ts'
import {
  BURST_FORM,
  INTERVAL_FORM,
  readBurst,
  readInterval,
  alarmsOf,
} from '../../services/hooks/alarms.ts'
import {
  createProvider,
  enableProvider,
  MAX_OVERLAP_S,
  providerStatus,
  readProviders,
  receiverPath,
  removeProvider,
  rotateSecret,
  setAlarms,
  type MadeProvider,
} from '../../services/hooks/providers.ts'
import { isTicked, readForm, readOptionalForm, wantsFullPage } from '../form.ts'
import { hooksFault, notFound } from './faults.ts'
import type { HooksRoutes } from './options.ts'
import { rejectionQueries, type RejectionCount } from '../../db/hooks/rejections.ts'
import type { ActiveProvider } from '../../db/hooks/providers.ts'
import { formatDuration } from '../../kernel/time.ts'
import {
  isSignedProvider,
  secretVariable,
  type SigningSecrets,
} from '../../services/hooks/secrets.ts'

/** `/providers` and its form posts (hooks.md section 4, decisions.md section 3). */
export function providerRoutes(options: HooksRoutes): readonly Route[] {
  const { hooks, baseUrl, overlapSeconds } = options
  const { clock, registry, secrets } = hooks
  const tools = { ...hooks, now: () => clock.now() }

  async function view(changes: Partial<ProvidersView>): Promise<ProvidersView> {
    const canSign = secrets.box() !== undefined
    const cards = await providerCards(options)
    return { baseUrl: baseUrl(), canSign, made: null, refused: null, ...changes, cards }
  }

  /** The fragment, or the page around it for a browser without script. */
  async function answer(
    context: Context,
    changes: Partial<ProvidersView>,
    status = 200,
  ): Promise<Reply> {
    const shown = await view(changes)
    return htmlReply(
      wantsFullPage(context) ? providersPage(shown) : providersFragment(shown),
      status,
    )
  }

  async function made(context: Context, result: MadeProvider, rotated: boolean): Promise<Reply> {
    await registry.refresh()
    const url = baseUrl() + receiverPath(result.name)
    return answer(context, { made: { ...result, url, rotated } })
  }

  /** The card after a change, or the page for a browser without script. */
  async function changed(context: Context, name: string, saved: boolean): Promise<Reply> {
    await registry.refresh()
    const cards = await providerCards(options)
    const card = cards.find((candidate) => candidate.status.name === name)
    if (card === undefined) return hooksFault(notFound('The provider was removed.'), context)
    if (wantsFullPage(context)) return answer(context, {})
    return htmlReply(providerCard({ ...card, alarm: { ...card.alarm, saved } }))
  }

  async function create(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const name = form.get('name') ?? ''
    const trust_mode = form.get('trust_mode') ?? 'token'
    if (trust_mode !== 'token' && trust_mode !== 'signed' && trust_mode !== 'open') {
      return hooksFault(unprocessable('trust_mode must be token, signed or open.'), context)
    }
    const acknowledgeOpen = isTicked(form, 'acknowledge_open')
    const secret = trust_mode === 'signed' ? secretOf(form) : undefined
    const wanted = { name, trust_mode, secret, acknowledgeOpen, enabled: false } as const
    try {
      return await made(context, await createProvider(tools, wanted), false)
    } catch (error) {
      if (!(error instanceof Fault) || !wantsFullPage(context)) throw error
      const { status, message } = error
      return answer(context, { refused: { name, trust_mode, message } }, status)
    }
  }

  async function toggle(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const enabled = form.get('enabled')
    if (enabled !== 'true' && enabled !== 'false') {
      return hooksFault(unprocessable('enabled must be true or false.'), context)
    }
    const name = context.params['name'] ?? ''
    await enableProvider(tools, name, enabled === 'true')
    return changed(context, name, false)
  }

  async function alarm(context: Context): Promise<Reply> {
    const form = await readForm(context)
    if ('status' in form) return hooksFault(form, context)
    const interval = readInterval((form.get('expected_interval') ?? '').trim())
    const burst = readBurst((form.get('rejection_burst') ?? '').trim())
    if (interval === 'invalid') {
      return hooksFault(unprocessable(`expected_interval must be ${INTERVAL_FORM}.`), context)
    }
    if (burst === 'invalid') {
      return hooksFault(unprocessable(`rejection_burst must be ${BURST_FORM}.`), context)
    }
    const change = {
      ...(form.has('expected_interval') && { expected_interval_s: interval }),
      ...(form.has('rejection_burst') && { rejection_burst: burst }),
    }
    const name = context.params['name'] ?? ''
    await setAlarms(tools, name, change)
    return changed(context, name, true)
  }

  async function rotate(context: Context): Promise<Reply> {
    const form = await readOptionalForm(context)
    if ('status' in form) return hooksFault(form, context)
    const overlap = form.get('overlap') ?? String(overlapSeconds())
    if (!/^\d{1,7}$/.test(overlap) || Number(overlap) > MAX_OVERLAP_S) {
      const detail = `overlap must be a whole number of seconds from 0 to ${MAX_OVERLAP_S}.`
      return hooksFault(unprocessable(detail), context)
    }
    const wish = { overlapSeconds: Number(overlap), secret: secretOf(form) }
    return made(context, await rotateSecret(tools, context.params['name'] ?? '', wish), true)
  }

  async function remove(context: Context): Promise<Reply> {
    await removeProvider(tools, context.params['name'] ?? '')
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
    { method: 'POST', path: '/providers/:name/alarm', access: 'guarded', handle: alarm },
    { method: 'POST', path: '/providers/:name/rotate', access: 'guarded', handle: rotate },
    { method: 'POST', path: '/providers/:name/remove', access: 'guarded', handle: remove },
  ]
}

/** The secret that a form gives; an empty field gives none. */
function secretOf(form: URLSearchParams): string | undefined {
  const secret = (form.get('secret') ?? '').trim()
  return secret === '' ? undefined : secret
}

function unprocessable(detail: string): FaultValue {
  return { status: 422, code: 'UNPROCESSABLE', detail }
}

/** Every provider as its card shows it. */
export async function providerCards(options: HooksRoutes): Promise<readonly ProviderCard[]> {
  const { db, clock } = options.hooks
  const now = clock.now()
  const [providers, counts] = await Promise.all([
    readProviders(db, now),
    rejectionQueries.listRejectionCounts(db, {}),
  ])
  return providers.map((provider) => cardOf(provider, counts, now, options))
}

function cardOf(
  provider: ActiveProvider,
  counts: readonly RejectionCount[],
  now: Date,
  { hooks, baseUrl, overlapSeconds }: HooksRoutes,
): ProviderCard {
  const { name, recent_count, last_event_at, previous_until } = provider
  const { expected_interval_s: interval, rejection_burst: burst } = provider
  const status = providerStatus(provider, hooks.secrets)
  const firing = status.enabled ? alarmsOf(provider, now).filter(({ fires }) => fires) : []
  return {
    status,
    recent_count,
    last_event_at,
    rejections: counts.find((count) => count.provider === name) ?? null,
    url: status.path === null ? null : baseUrl() + status.path,
    variable: isSignedProvider(name) ? secretVariable(name) : null,
    lastSecret: lastSecret(provider, hooks.secrets),
    previousUntil: previous_until !== null && now < previous_until ? previous_until : null,
    overlaps: overlaps(overlapSeconds()),
    alarm: {
      interval: interval === null ? null : formatDuration(interval),
      burst,
      firing: firing.map(({ kind }) => kind),
      saved: false,
    },
  }
}

/**
 * Which secret was used last. Of secrets in the configuration "current" means another one after each
 * change, and nothing says when that was: a note from before this process knew them is left out.
 */
function lastSecret(
  { name, last_secret: secret, last_secret_at: at }: ActiveProvider,
  secrets: SigningSecrets,
): ProviderCard['lastSecret'] {
  if (secret === null || at === null) return null
  const since = isSignedProvider(name) ? secrets.of(name)?.since : undefined
  return since !== undefined && at < since ? null : { secret, at }
}

/** Offered overlaps, in seconds. */
const OVERLAPS = [0, 3_600, 86_400, 7 * 86_400]

/** The configured overlap is offered as well where it is none of the usual ones. */
function overlaps(configured: number): ProviderCard['overlaps'] {
  const offered = [...new Set([...OVERLAPS, configured])].toSorted((a, b) => a - b)
  return offered.map((seconds) => {
    return { seconds, text: formatDuration(seconds), chosen: seconds === configured }
  })
}
