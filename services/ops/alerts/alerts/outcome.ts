import type { EarlierAlert, InProgress } from '../../../../db/ops/alerts/alerts.ts'
import type { Silence } from '../../../../db/ops/alerts/silences.ts'
import { silenceOf } from '../silences.ts'
import type { ReadAlert } from './payload.ts'

/** The settings of alerts, as configured now. By default none of them is set. */
export interface AlertRules {
  /** Seconds for which an alert waits before it is looked at. */
  hold: number
  /** Seconds after the start of its session in which a repeat starts none. */
  dedup: number
  /** Whether an alert that comes while a session runs waits for its end. */
  queue: boolean
}

/** What a delivery meets. */
export interface Situation {
  /** Its alert before it; undefined for the first delivery. */
  earlier: EarlierAlert | undefined
  /** All alerts in progress. */
  inProgress: InProgress
  isRunning: boolean
  silences: readonly Silence[]
}

/** What becomes of a delivery. `detail` is for its sender; undefined where the contract has all. */
export type Decision =
  /** It is read now, and starts a session. */
  | { kind: 'read' }
  /** A session runs: nothing starts by itself. */
  | { kind: 'acknowledged'; detail: undefined }
  /** It would wait, but too many do: nothing starts by itself. */
  | { kind: 'full'; detail: string }
  /** It is a repeat of what waits, is being read or was just looked into. */
  | { kind: 'joined'; detail: string }
  | { kind: 'waiting'; detail: string; due: Date }
  | { kind: 'resolved'; detail: string }
  | { kind: 'silenced'; detail: string; silence: number }

/** More do not wait. The first ones of a flood are nearest to its cause, so they stay. */
export const MAX_WAITING = 100

/** Decides what becomes of a delivery. */
export function decide(
  read: ReadAlert,
  situation: Situation,
  rules: AlertRules,
  now: Date,
): Decision {
  const { earlier, inProgress, isRunning, silences } = situation
  const isWaiting = earlier?.outcome === 'waiting'
  if (read.status === 'resolved' && (hasRules(rules) || isWaiting)) {
    const detail = isWaiting ? 'resolved: it waits no longer' : 'resolved: nothing starts'
    return { kind: 'resolved', detail }
  }
  const silence = silenceOf(silences, read, now)
  if (silence !== undefined) {
    const { id, ends_at } = silence
    const detail = `silenced until ${ends_at.toISOString()} by silence ${id}`
    return { kind: 'silenced', detail, silence: id }
  }
  const joined = earlier && joinedBy(earlier, rules, now)
  if (joined !== undefined) return { kind: 'joined', detail: `joined: ${joined}` }
  const before = inProgress.waiting + inProgress.reading
  const waits = rules.hold > 0 || (rules.queue && (isRunning || before > 0))
  if (waits) return waitOf(inProgress.waiting, rules, now)
  if (isRunning) return { kind: 'acknowledged', detail: undefined }
  return { kind: 'read' }
}

function hasRules({ hold, dedup, queue }: AlertRules): boolean {
  return hold > 0 || dedup > 0 || queue
}

/** Why a delivery starts nothing of its own; undefined for one that does. */
function joinedBy(
  { outcome, session_id, session_at }: EarlierAlert,
  rules: AlertRules,
  now: Date,
): string | undefined {
  if (outcome === 'waiting') return 'it waits already'
  if (outcome === 'received' && hasRules(rules)) return 'it is being read'
  if (session_at === null) return undefined
  // The clock of the instance that started it may be ahead.
  const ago = Math.abs(now.getTime() - session_at.getTime())
  if (ago >= rules.dedup * 1_000) return undefined
  return `session ${session_id} began ${Math.round(ago / 1_000)} s ago`
}

function waitOf(waiting: number, { hold }: AlertRules, now: Date): Decision {
  if (waiting >= MAX_WAITING) {
    return { kind: 'full', detail: `not queued: ${waiting} alerts wait already` }
  }
  const detail = hold > 0 ? `held for ${hold} s` : `queued: ${waiting} before it`
  return { kind: 'waiting', detail, due: new Date(now.getTime() + hold * 1_000) }
}
