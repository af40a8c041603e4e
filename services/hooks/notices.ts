import type { Executor } from '../../db/client.ts'
import { destinationQueries } from '../../db/hooks/send/destinations.ts'
import { providerQueries, type ActiveProvider } from '../../db/hooks/receive/providers.ts'
import { serverQueries } from '../../db/server.ts'
import { repeat, reportsTo, type Repeat } from '../../kernel/repeat.ts'
import { formatDuration } from '../../kernel/time.ts'
import { reconcileNotices, type Firing } from '../notices/notices.ts'
import { readProviders } from './receive/providers/providers.ts'
import type { HooksParts } from './registry.ts'
import { alarmsOf, type AlarmKind } from './receive/alarms.ts'

const NOTICE_MS = 5_000
const PREFIX = 'hooks alarm '

/** Tells people once that an alarm begins to fire, and once that it is over. */
export function startAlarmNotices({ db, clock, log }: HooksParts): Repeat {
  const round = () => {
    const group = { service: 'hooks', site: 'hooks', prefix: PREFIX, now: clock.now() } as const
    return reconcileNotices(db, group, readFiring)
  }
  const reports = reportsTo(
    log,
    'notices of alarms not looked up',
    'notices of alarms are looked up again',
  )
  return repeat(clock, NOTICE_MS, 'notices of alarms', round, reports)
}

/**
 * What fires by the database and its clock alone, so that all instances find the same. A provider
 * that one instance has no secret for fires, too.
 */
async function readFiring(db: Executor): Promise<readonly Firing[]> {
  const known = await providerQueries.listProviders(db, {})
  const watched = known.some((provider) => provider.enabled && provider.watched)
  const targets = await destinationQueries.listTargets(db, {})
  const failed = targets.filter((one) => one.failed && one.kind === 'standing')
  const silentOrRefused = watched ? await readProviderFiring(db) : []
  return [...silentOrRefused, ...failed.map(({ name }) => destinationFiring(name))]
}

async function readProviderFiring(db: Executor): Promise<readonly Firing[]> {
  const { at } = await serverQueries.readClock(db, {})
  const providers = await readProviders(db, at)
  return providers
    .filter(({ enabled }) => enabled)
    .flatMap((provider) =>
      alarmsOf(provider, at)
        .filter(({ fires }) => fires)
        .map(({ kind }) => providerFiring(provider, kind)),
    )
}

function providerFiring(provider: ActiveProvider, kind: AlarmKind): Firing {
  const { name, expected_interval_s, rejection_burst } = provider
  const about = { key: `${PREFIX}${kind} ${name}`, path: '/providers' }
  if (kind === 'silent') {
    const time = formatDuration(expected_interval_s ?? 0)
    return { ...about, level: 'critical', message: `${name}: no event for longer than ${time}` }
  }
  const message = `${name}: ${rejection_burst} or more deliveries with a wrong secret in 5 minutes`
  return { ...about, level: 'warning', message }
}

function destinationFiring(name: string): Firing {
  const message = `Destination ${name} is disabled, because its deliveries failed: events wait`
  const path = `/destinations/${encodeURIComponent(name)}`
  return { key: `${PREFIX}disabled ${name}`, level: 'critical', message, path }
}
