import * as Type from '../../../kernel/schema.ts'
import type { ActiveProvider } from '../../../db/hooks/receive/providers.ts'
import { DURATION_FORM, parseDuration } from '../../../kernel/time.ts'
import { parsed } from '../../../kernel/validate.ts'
import type { HooksParts, Registry } from '../registry.ts'

/** `silent`: no event for longer than expected; `burst`: many deliveries with a wrong secret. */
export type AlarmKind = 'silent' | 'burst'

/** An alarm about a provider or a destination, and whether it fires. */
interface Alarm {
  provider?: string
  destination?: string
  kind: AlarmKind | 'disabled'
  fires: boolean
}

/** An alarm that an operator has set. */
export interface ProviderAlarm extends Alarm {
  provider: string
  kind: AlarmKind
}

const BURST_MS = 5 * 60_000

/**
 * Start of the window in which rejections make a burst: five minutes, in whole minutes of the
 * clock.
 */
export function rejectedSince(now: Date): Date {
  return new Date(now.getTime() - BURST_MS)
}

/** The alarms that are set for a provider, which must be enabled: a disabled one raises none. */
export function alarmsOf(provider: ActiveProvider, now: Date): readonly ProviderAlarm[] {
  const { name, expected_interval_s: interval, rejection_burst: burst } = provider
  const alarms: ProviderAlarm[] = []
  if (interval !== null) {
    const quiet = now.getTime() - heardAt(provider)
    alarms.push({ provider: name, kind: 'silent', fires: quiet > interval * 1_000 })
  }
  if (burst !== null) {
    alarms.push({ provider: name, kind: 'burst', fires: provider.rejected_count >= burst })
  }
  return alarms
}

/** The alarm of each destination: it fires once failures have disabled the destination. */
function destinationAlarms({ destinations }: Pick<Registry, 'destinations'>) {
  return destinations.map(({ name: destination, failed: fires }): Alarm => {
    return { destination, kind: 'disabled', fires }
  })
}

/** Start of the silence: the last event, or a later change of the alarm or of `enabled`. */
function heardAt({ heard_at, watched_since }: ActiveProvider): number {
  return Math.max(heard_at?.getTime() ?? 0, watched_since?.getTime() ?? 0)
}

const REFRESH_MS = 2_000

/**
 * Opens the board, which knows what alarms are set and which of them fire. Time alone makes a
 * provider silent, so `refresh` is called again and again while an alarm is set. `changed` hears
 * when one has begun or ended.
 */
export function openAlarms(
  { clock, log, metrics }: HooksParts,
  registry: Pick<Registry, 'hasAlarms' | 'destinations' | 'onChange'>,
  refresh: () => void,
  changed: () => void,
) {
  let ofProviders: readonly ProviderAlarm[] = []
  let ofDestinations: readonly Alarm[] = []
  let updatedAt = 0
  metrics.gauge('gatehouse_hooks_alarm', 'Alarms that are set: 1 while one fires.', () =>
    ofProviders.map(({ provider, kind, fires }) => [{ provider, kind }, fires ? 1 : 0]),
  )

  /** Logs once that an alarm begins or ends. */
  function report(before: readonly Alarm[], after: readonly Alarm[]): void {
    const begun = firing(after).filter((alarm) => !has(before, alarm))
    const ended = firing(before).filter((alarm) => !has(after, alarm))
    for (const { provider, destination, kind } of begun) {
      log.warn('alarm', { provider, destination, kind })
    }
    for (const { provider, destination, kind } of ended) {
      log.info('alarm ended', { provider, destination, kind })
    }
    if (begun.length + ended.length > 0) changed()
  }

  /** Takes the alarms of providers as of a time. */
  function update(alarms: readonly ProviderAlarm[], at: Date): void {
    // Two readings may overlap: an older one must not replace a newer one.
    if (at.getTime() < updatedAt) return
    updatedAt = at.getTime()
    report(ofProviders, alarms)
    ofProviders = alarms
  }

  /** Those of destinations need no reading: the registry knows which one failures have disabled. */
  function updateDestinations(): void {
    const alarms = destinationAlarms(registry)
    report(ofDestinations, alarms)
    ofDestinations = alarms
  }

  updateDestinations()
  registry.onChange(updateDestinations)
  const stop = clock.every(REFRESH_MS, () => {
    if (registry.hasAlarms || ofProviders.length > 0) refresh()
  })
  return { update, close: stop }
}

function firing(alarms: readonly Alarm[]): readonly Alarm[] {
  return alarms.filter(({ fires }) => fires)
}

function has(alarms: readonly Alarm[], { provider, destination, kind }: Alarm): boolean {
  return firing(alarms).some(
    (alarm) =>
      alarm.provider === provider && alarm.destination === destination && alarm.kind === kind,
  )
}

const MAX_INTERVAL_S = 366 * 86_400
const MAX_BURST = 1_000_000

/** The accepted form of an expected interval, in words. */
export const INTERVAL_FORM = `${DURATION_FORM}, a year at most; 0 turns it off`

/** The accepted form of a burst's threshold, in words. */
export const BURST_FORM = `a whole number of refusals from 1 to ${MAX_BURST}; 0 turns it off`

/**
 * Reads an expected interval in seconds; null (off) for nothing and for 0, undefined for another
 * form.
 */
function readInterval(text: string): number | null | undefined {
  if (text === '' || text === '0') return null
  const seconds = parseDuration(text) ?? 0
  return seconds < 1 || seconds > MAX_INTERVAL_S ? undefined : seconds
}

/** Reads a burst's threshold; null (off) for nothing and for 0, undefined for another form. */
function readBurst(text: string): number | null | undefined {
  if (text === '' || text === '0') return null
  const count = /^\d{1,7}$/.test(text) ? Number(text) : 0
  return count < 1 || count > MAX_BURST ? undefined : count
}

const Threshold = Type.Optional(Type.Unsafe<number | null>({ type: 'string' }))

/**
 * What the form of a provider's alarms sends; an absent field keeps its alarm, null turns it off.
 */
export const AlarmForm = Type.Object({
  expected_interval: parsed(Threshold, `must be ${INTERVAL_FORM}.`, (given) =>
    readInterval(String(given).trim()),
  ),
  rejection_burst: parsed(Threshold, `must be ${BURST_FORM}.`, (given) =>
    readBurst(String(given).trim()),
  ),
})
export type AlarmForm = Type.Static<typeof AlarmForm>
