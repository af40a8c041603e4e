import Type from 'typebox'
import type { Beat } from '../../../db/ops/checks.ts'
import { hashToken } from '../../../kernel/tokens.ts'
import { formatDuration, parseDuration } from '../../../kernel/time.ts'
import { defineCheck, failed, passed, unknown, type Finding } from './check.ts'

const Duration = Type.String({
  pattern: '^[1-9][0-9]{0,6}[smhd]$',
  description: 'a number and s, m, h or d, such as 90m',
})
const DEFAULT_GRACE = '5m'

/**
 * A job says when it has ended, by calling `/beat/TOKEN`; its silence is a failure. What it says of
 * itself counts at once.
 */
export const heartbeatCheck = defineCheck('heartbeat', {
  takes: {
    /** How often the job ends. */
    period: Duration,
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
  },
  level: 'critical',
  nameOf: () => 'heartbeat',
  mistakeOf({ token, token_sha256 }) {
    const isOne = (token === undefined) !== (token_sha256 === undefined)
    return isOne ? undefined : ['', 'must have token or token_sha256']
  },
  async run({ period, grace = DEFAULT_GRACE }, { beat, now }) {
    return findingOf(await beat(), now(), secondsOf(period), secondsOf(grace))
  },
})

/** The hash by which the token of a heartbeat is found, in hex; undefined for other checks. */
export function beatHash(check: { type: string; token?: string; token_sha256?: string }) {
  if (check.type !== 'heartbeat') return undefined
  const { token, token_sha256 } = check
  return token === undefined ? token_sha256 : hashToken(token).toString('hex')
}

/** The schema has durations alone. */
function secondsOf(duration: string): number {
  return parseDuration(duration) ?? 0
}

function findingOf(beat: Beat | undefined, now: Date, period_s: number, grace_s: number): Finding {
  const { beat_at = null, beat_failed = false, beat_ms = null, begun_at = null } = beat ?? {}
  const ago = (at: Date) => Math.max(0, Math.round((now.getTime() - at.getTime()) / 1_000))
  const runs_s =
    begun_at !== null && (beat_at === null || begun_at > beat_at) ? ago(begun_at) : null
  if (runs_s !== null && runs_s > grace_s) {
    return failed(`began ${inWords(runs_s)} ago and has not ended, expected ${inWords(grace_s)}`)
  }
  if (runs_s !== null) return passed(`began ${inWords(runs_s)} ago`)
  if (beat_at === null) return unknown('its job has not called yet; let it call its address')
  const last_s = ago(beat_at)
  if (beat_failed) return failed(`its job failed ${inWords(last_s)} ago`)
  if (last_s > period_s + grace_s) {
    return failed(`no call for ${inWords(last_s)}, expected one every ${formatDuration(period_s)}`)
  }
  const message = `called ${inWords(last_s)} ago`
  if (beat_ms === null) return passed(message)
  return { ...passed(`${message}, took ${inWords(Math.round(beat_ms / 1_000))}`), ms: beat_ms }
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
