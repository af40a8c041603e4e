import { rejectionQueries, type RejectionCount } from '../../db/hooks/rejections.ts'
import type { Provider } from '../../db/hooks/rows.ts'
import type { ProviderCard } from '../../html/hooks/views.ts'
import { formatDuration } from '../../kernel/time.ts'
import { alarmsOf } from '../../services/hooks/alarms.ts'
import { providerStatus } from '../../services/hooks/provider-status.ts'
import {
  isSignedProvider,
  secretVariable,
  type SigningSecrets,
} from '../../services/hooks/signing-secrets.ts'
import { readProviders } from '../../services/hooks/status.ts'
import type { HooksRoutes } from './options.ts'

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
  provider: Provider,
  counts: readonly RejectionCount[],
  now: Date,
  { hooks, baseUrl, overlapSeconds }: HooksRoutes,
): ProviderCard {
  const { name, recent_count, last_event_at, retired_until } = provider
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
    previousUntil: retired_until !== null && now < retired_until ? retired_until : null,
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
  { name, last_secret: secret, last_secret_at: at }: Provider,
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
