import { recoveryQueries } from '../../../../db/hooks/receive/recoveries.ts'
import { rejectionQueries } from '../../../../db/hooks/receive/rejections.ts'
import type { ActiveProvider } from '../../../../db/hooks/receive/providers.ts'
import type { ProviderCard } from '../../../../html/hooks/receive/providers/shown.ts'
import type { Option } from '../../../../html/form.ts'
import type { Made } from '../../../../html/hooks/receive/providers/providers.ts'
import type { Actor } from '../../../../kernel/actor.ts'
import { formatDuration } from '../../../../kernel/time.ts'
import { alarmsOf } from '../../../../services/hooks/receive/alarms.ts'
import {
  providerStatus,
  readProviders,
  receiverPath,
  type MadeProvider,
  type ProviderTools,
} from '../../../../services/hooks/receive/providers/providers.ts'
import { recoveriesOf } from '../../../../services/hooks/receive/recoveries/recoveries.ts'
import { schemeNote, senderInfo } from '../../../../services/hooks/receive/schemes/describe.ts'
import { presetNamed, schemeOf } from '../../../../services/hooks/receive/schemes/schemes.ts'
import { isSignedProvider } from '../../../../services/hooks/receive/schemes/provider-names.ts'
import type { SigningSecrets } from '../../../../services/hooks/receive/schemes/signing-secrets.ts'
import { configuredOf } from '../../../../services/hooks/receive/schemes/secrets.ts'
import { secretVariable } from '../../../../services/hooks/receive/schemes/configured-secrets.ts'
import { isSignable } from '../../../../services/hooks/receive/schemes/signing.ts'
import type { HooksRoutes } from '../../kit.ts'

export function toolsOf({ hooks }: HooksRoutes, actor: Actor): ProviderTools {
  return { ...hooks, actor, now: () => hooks.clock.now() }
}

/** What is shown of a provider that was created or got a new secret. */
export function describeMade(app: HooksRoutes, made: MadeProvider, state: Made['state']): Made {
  const url = app.baseUrl() + receiverPath(made.name)
  const scheme = schemeOf(made)
  const signing = scheme && isSignable(scheme) ? scheme : undefined
  const preset = presetNamed(made.scheme)
  const sender = preset && made.scheme !== 'hmac' ? senderInfo(preset) : undefined
  return { ...made, url, state, signing, sender }
}

/** Every provider as its row shows it. */
export async function readCards(app: HooksRoutes): Promise<readonly ProviderCard[]> {
  const { db, clock, secrets } = app.hooks
  const now = clock.now()
  const [providers, counts, recoveries] = await Promise.all([
    readProviders(db, now),
    rejectionQueries.listRejectionCounts(db, {}),
    recoveryQueries.listRecoveries(db, {}),
  ])
  const canSign = secrets.box() !== undefined
  const overlap = app.overlapSeconds()
  const times = new Set([0, 3_600, 86_400, 7 * 86_400, overlap])
  const overlaps = [...times].toSorted((a, b) => a - b).map(overlapOption)
  return providers.map((provider) => {
    const { name, previous_until: until, expected_interval_s: interval } = provider
    const status = providerStatus(provider, secrets)
    const firing = alarmsOf(provider, now).filter(({ fires }) => fires && status.enabled)
    return {
      ...provider,
      ...status,
      methods: provider.methods,
      rejections: counts.find((count) => count.provider === name),
      recoveries: recoveriesOf(recoveries, provider),
      url: status.path === null ? null : app.baseUrl() + status.path,
      isGiven: schemeOf(provider)?.isGiven === true,
      senderTitle: presetNamed(provider.scheme)?.title ?? null,
      schemeNote: schemeNote(presetNamed(provider.scheme)),
      variable: isSignedProvider(name) ? secretVariable(name) : null,
      isConfigured: configuredOf(secrets, name) !== undefined,
      isStored: provider.token_hash !== null || provider.signing_secret !== null,
      canSign,
      lastSecret: lastSecretOf(provider, secrets),
      previous_until: until !== null && now < until ? until : null,
      rotatedAt: provider.rotated_at?.toISOString() ?? '',
      overlaps,
      overlap: String(overlap),
      interval: interval === null ? null : formatDuration(interval),
      firing: firing.map(({ kind }) => kind),
    }
  })
}

/**
 * Which secret was used last. Of configured secrets "current" means another one after each change,
 * and nothing records the time of a change: a use before this process knew them is left out.
 */
function lastSecretOf(
  { name, last_secret: secret, last_secret_at: at }: ActiveProvider,
  secrets: SigningSecrets,
): ProviderCard['lastSecret'] {
  if (secret === null || at === null) return null
  const since = configuredOf(secrets, name)?.since
  return since !== undefined && at < since ? null : { secret, at }
}

function overlapOption(seconds: number): Option {
  return [String(seconds), seconds === 0 ? 'no longer' : `for ${formatDuration(seconds)} more`]
}
