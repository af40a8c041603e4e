import Type from 'typebox'
import type { ActiveProvider } from '../../db/hooks/providers.ts'
import { type Clock, DURATION_FORM, parseDuration } from '../../kernel/time.ts'
import { parsed } from '../../kernel/validate.ts'
import type { Log } from '../../kernel/log.ts'
import type { Metrics } from '../../kernel/metrics.ts'

/** `silent`: no event for longer than expected; `burst`: many deliveries with a wrong secret. */
export type AlarmKind = 'silent' | 'burst'

/** An alarm that an operator has set, and whether it fires. */
export interface Alarm {
  readonly provider: string
  readonly kind: AlarmKind
  readonly fires: boolean
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
export function alarmsOf(provider: ActiveProvider, now: Date): readonly Alarm[] {
  const { name, expected_interval_s: interval, rejection_burst: burst } = provider
  const alarms: Alarm[] = []
  if (interval !== null) {
    const quiet = now.getTime() - heardAt(provider)
    alarms.push({ provider: name, kind: 'silent', fires: quiet > interval * 1_000 })
  }
  if (burst !== null) {
    alarms.push({ provider: name, kind: 'burst', fires: provider.rejected_count >= burst })
  }
  return alarms
}

/** Start of the silence: the last event, or a later change of the alarm or of `enabled`. */
function heardAt({ heard_at, watched_since }: ActiveProvider): number {
  return Math.max(heard_at?.getTime() ?? 0, watched_since?.getTime() ?? 0)
}

/** Knows which alarms are set and which of them fire. */
export interface AlarmBoard {
  /** Takes the alarms as of a time; logs once that one begins or ends. */
  update(alarms: readonly Alarm[], at: Date): void
  /** Calls back when an alarm has begun or ended. */
  onChange(callback: () => void): void
  close(): void
}

const REFRESH_MS = 2_000

/**
 * Opens the board. Time alone makes a provider silent, so `refresh` is called again and again while
 * `hasAlarms` says that an alarm is set.
 */
export function openAlarms(
  clock: Clock,
  log: Log,
  metrics: Metrics,
  hasAlarms: () => boolean,
  refresh: () => void,
): AlarmBoard {
  let present: readonly Alarm[] = []
  let presentAt = 0
  const callbacks: (() => void)[] = []
  metrics.gauge('gatehouse_hooks_alarm', 'Alarms that are set: 1 while one fires.', () =>
    present.map(({ provider, kind, fires }) => [{ provider, kind }, fires ? 1 : 0] as const),
  )

  function update(alarms: readonly Alarm[], at: Date): void {
    // Two readings may overlap: an older one must not replace a newer one.
    if (at.getTime() < presentAt) return
    presentAt = at.getTime()
    const begun = firing(alarms).filter((alarm) => !has(present, alarm))
    const ended = firing(present).filter((alarm) => !has(alarms, alarm))
    present = alarms
    for (const { provider, kind } of begun) log.warn('alarm', { provider, kind })
    for (const { provider, kind } of ended) log.info('alarm ended', { provider, kind })
    if (begun.length + ended.length > 0) for (const callback of callbacks) callback()
  }

  const stop = clock.every(REFRESH_MS, () => {
    if (hasAlarms() || present.length > 0) refresh()
  })
  return { update, onChange: (callback) => callbacks.push(callback), close: stop }
}

function firing(alarms: readonly Alarm[]): readonly Alarm[] {
  return alarms.filter(({ fires }) => fires)
}

function has(alarms: readonly Alarm[], { provider, kind }: Alarm): boolean {
  return firing(alarms).some((alarm) => alarm.provider === provider && alarm.kind === kind)
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
export function readInterval(text: string): number | null | undefined {
  if (text === '' || text === '0') return null
  const seconds = parseDuration(text) ?? 0
  return seconds < 1 || seconds > MAX_INTERVAL_S ? undefined : seconds
}

/** Reads a burst's threshold; null (off) for nothing and for 0, undefined for another form. */
export function readBurst(text: string): number | null | undefined {
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
