import * as Type from '../../../../kernel/schema.ts'
import type { Beat } from '../../../../db/ops/watch/checks.ts'
import { hashToken } from '../../../../kernel/tokens.ts'
import { formatDuration, parseDuration } from '../../../../kernel/time.ts'
import { redactLine } from '../../redact.ts'
import { readCron } from '../../../../kernel/cron.ts'
import { isZone, ZONE_FORM } from '../../../../kernel/days.ts'
import {
  defineCheck,
  failed,
  passed,
  unknown,
  type CheckContext,
  type Finding,
  type Mistake,
} from './check.ts'

const Duration = Type.String({
  pattern: '^[1-9][0-9]{0,6}[smhd]$',
  description: 'a number and s, m, h or d, such as 90m',
})
const DEFAULT_GRACE = '5m'
/** A job whose clock is ahead calls a little before it is due. */
const EARLY_MS = 60_000
/** Characters of the last line that a job sent along, in a message. */
const MAX_LINE = 200

const takes = {
  /** How often the job ends. */
  period: Type.Optional(Duration),
  /** When the job begins, as in a crontab, in place of `period`; by the clock of the zone `tz`. */
  cron: Type.Optional(Type.String({ minLength: 9, maxLength: 100 })),
  tz: Type.Optional(Type.String({ minLength: 1, maxLength: 60 })),
  /** How much later it may end, and how long it may take if it says when it begins. */
  grace: Type.Optional(Duration),
  /** The secret part of its address; or its SHA-256 in hex, so that the file has no secret. */
  token: Type.Optional(
    Type.String({
      pattern: '^[A-Za-z0-9_-]{20,100}$',
      description: '20 to 100 letters, digits, _ or -',
    }),
  ),
  token_sha256: Type.Optional(
    Type.String({ pattern: '^[0-9a-f]{64}$', description: '64 digits of hex' }),
  ),
}
type Heartbeat = Type.Static<Type.TObject<typeof takes>>

/**
 * A job says when it has ended, by calling `/beat/TOKEN`; its silence is a failure. What it says of
 * itself counts at once, and a failure lasts until it succeeds.
 */
export const heartbeatCheck = defineCheck('heartbeat', {
  takes,
  level: 'critical',
  nameOf: () => 'heartbeat',
  // It waits for the database alone: each has a place of its own.
  peerOf: ({ token = '', token_sha256 = token }) => token_sha256,
  mistakeOf({ token, token_sha256, ...times }) {
    const isOne = (token === undefined) !== (token_sha256 === undefined)
    return timeMistake(times) ?? (isOne ? undefined : ['', 'must have token or token_sha256'])
  },
  async run(check, context) {
    return findingOf(check, await context.beat(), context)
  },
})

function timeMistake({ period, cron, tz }: Heartbeat): Mistake | undefined {
  if ((period === undefined) === (cron === undefined)) return ['', 'must have period or cron']
  if (cron === undefined)
    return tz === undefined ? undefined : ['/tz', 'must not be there without cron']
  if (tz !== undefined && !isZone(tz)) return ['/tz', `must be ${ZONE_FORM}`]
  if (readCron(cron, tz) === undefined) {
    return ['/cron', 'must be minute, hour, day, month and weekday, such as 0 3 * * 1-5']
  }
  return undefined
}

/** The hash by which the token of a heartbeat is found, in hex; undefined for other checks. */
export function beatHash(check: { type: string; token?: string; token_sha256?: string }) {
  if (check.type !== 'heartbeat') return undefined
  const { token, token_sha256 } = check
  return token === undefined ? token_sha256 : hashToken(token).toString('hex')
}

/** How much later than it is due a job may end, in seconds. */
export function graceOf({ grace = DEFAULT_GRACE }: { type: string; grace?: string }): number {
  return secondsOf(grace)
}

/** The schema has durations alone. */
function secondsOf(duration: string): number {
  return parseDuration(duration) ?? 0
}

/** When a job that ended at a time is due to end again. */
function nextDue({ period, cron, tz }: Heartbeat, after: Date): Date {
  if (cron === undefined) return new Date(after.getTime() + secondsOf(period ?? '') * 1_000)
  return readCron(cron, tz)?.nextRun(new Date(after.getTime() + EARLY_MS)) ?? after
}

function describeTimes({ period = '', cron, tz = 'UTC' }: Heartbeat): string {
  return cron === undefined
    ? `one every ${formatDuration(secondsOf(period))}`
    : `by ${cron} (${tz})`
}

function findingOf(
  check: Heartbeat,
  beat: Beat | undefined,
  { now, listensSince, redact }: CheckContext,
): Finding {
  if (beat === undefined || beat.first_beat_at === null) {
    return unknown('its job has not called yet; let it call its address')
  }
  const { beat_at, beat_failed, beat_ms, begun_at, first_beat_at, state } = beat
  const at = now()
  const ago = (then: Date): string => inWords(secondsBetween(then, at))
  const grace_s = graceOf({ type: 'heartbeat', ...check })
  // What is over since a stop or a suspension may have been called into the void: the job has its grace again.
  const isForgiven = (deadline: Date): boolean =>
    deadline < listensSince &&
    secondsBetween(listensSince, at) <= grace_s &&
    state !== 'fail' &&
    state !== 'warn'
  const running = begun_at !== null && (beat_at === null || begun_at > beat_at) ? begun_at : null
  if (running !== null && secondsBetween(running, at) > grace_s) {
    const deadline = new Date(running.getTime() + grace_s * 1_000)
    if (isForgiven(deadline)) return passed(`began ${ago(running)} ago, ${FORGIVEN}`)
    return failed(`began ${ago(running)} ago and has not ended, expected ${inWords(grace_s)}`)
  }
  if (beat_failed) return failed(failureOf(beat, running, ago, redact))
  const last = beat_at ?? first_beat_at
  const deadline = new Date(nextDue(check, last).getTime() + grace_s * 1_000)
  if (at > deadline) {
    if (isForgiven(deadline)) return passed(`called ${ago(last)} ago, ${FORGIVEN}`)
    const what = beat_at === null ? 'no success' : 'no call'
    return failed(`${what} for ${ago(last)}, expected ${describeTimes(check)}`)
  }
  if (running !== null) return passed(`began ${ago(running)} ago`)
  const message = `called ${ago(last)} ago`
  if (beat_ms === null) return passed(message)
  return { ...passed(`${message}, took ${inWords(Math.round(beat_ms / 1_000))}`), ms: beat_ms }
}

const FORGIVEN = 'and may have called while nothing listened'

/** A failure that lasts, also while the job runs again, with the last line that it sent along. */
function failureOf(
  { beat_at, beat_text }: Beat,
  running: Date | null,
  ago: (then: Date) => string,
  redact: CheckContext['redact'],
): string {
  if (running !== null)
    return `began ${ago(running)} ago; the run before it failed, or did not end`
  const said = redactLine(beat_text.trim().split('\n').at(-1) ?? '', MAX_LINE, redact)
  const failure = beat_at === null ? 'its job failed' : `its job failed ${ago(beat_at)} ago`
  return said === '' ? failure : `${failure}: ${said}`
}

function secondsBetween(then: Date, now: Date): number {
  return Math.max(0, Math.round((now.getTime() - then.getTime()) / 1_000))
}

/** A time in its two largest units, such as `2 h 5 min`. */
function inWords(seconds: number): string {
  const minutes = Math.floor(seconds / 60)
  if (minutes < 1) return `${seconds} s`
  const hours = Math.floor(minutes / 60)
  if (hours < 1) return `${minutes} min`
  const days = Math.floor(hours / 24)
  return days < 1 ? `${hours} h ${minutes % 60} min` : `${days} d ${hours % 24} h`
}
