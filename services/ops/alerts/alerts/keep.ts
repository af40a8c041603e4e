import {
  alertQueries as q,
  type AlertOutcome,
  type EarlierAlert,
} from '../../../../db/ops/alerts/alerts.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { listSilences } from '../silences.ts'
import type { BriefOptions } from './brief.ts'
import { decide, type AlertRules, type Decision } from './outcome.ts'
import type { Payload, ReadAlert } from './payload.ts'
import { noteFullQueue } from './queue.ts'

interface KeepOptions extends Pick<BriefOptions, 'db' | 'reader'> {
  alertRules: () => AlertRules
}

/** A delivery as it was read. */
interface GivenDelivery extends Pick<Payload, 'text' | 'tier'> {
  read: ReadAlert
  isStopping: boolean
}

/**
 * Keeps a delivery and decides what becomes of it, in one transaction: the next delivery, at any
 * instance, sees the outcome.
 */
export function keepDelivery(
  { db, reader, alertRules }: KeepOptions,
  { read, text, tier, isStopping }: GivenDelivery,
  now: Date,
) {
  return db.transaction(async (tx) => {
    await q.lockAlerts(tx, {})
    const { newest, running } = await sessionQueries.readSessionState(tx, {})
    const { fingerprint } = read
    const situation = {
      earlier: await q.findEarlier(tx, { fingerprint }),
      inProgress: await q.countInProgress(tx, {}),
      // While the server stops, a running session is about to end, and no reason to acknowledge.
      isRunning: running && !isStopping,
      silences: await listSilences(tx, now),
    }
    const { earlier } = situation
    if (earlier !== undefined && isLate(read, earlier)) {
      return { id: earlier.id, reading: 0, decision: LATE, newest }
    }
    const decision = decide(read, situation, alertRules(), now)
    const { id, count } = await q.saveAlert(tx, { ...rowOf(read, now), payload: text, now })
    if (decision.kind !== 'joined') {
      await q.setOutcome(tx, { id, tier, ...reader, ...outcomeOf(decision, now) })
    }
    if (decision.kind === 'full') await noteFullQueue(tx, now)
    return { id, reading: count, decision, newest }
  })
}

const LATE = { kind: 'late', detail: 'older than what is known: it changes nothing' } as const

/** Whether a delivery tells of a firing before the one that is known, or again of one that has ended. */
function isLate({ status, startsAt, endsAt }: ReadAlert, earlier: EarlierAlert): boolean {
  const { state, firing_since } = earlier
  if (status === 'resolved') {
    const isOfBefore = startsAt === null || startsAt < firing_since
    return state === 'firing' && isOfBefore && endsAt !== null && endsAt < firing_since
  }
  return state === 'resolved' && startsAt !== null && startsAt <= firing_since
}

function rowOf(read: ReadAlert, now: Date) {
  const { status, startsAt, endsAt, ...row } = read
  return {
    ...row,
    state: status,
    firing_since: notAfter(now, startsAt),
    resolved_at: status === 'resolved' ? notAfter(now, endsAt) : null,
  }
}

/** A time that the sender names; its clock may be ahead. */
function notAfter(now: Date, named: Date | null): Date {
  return named === null || named > now ? now : named
}

/** What becomes of a delivery that joins no earlier one. */
type Taken = Exclude<Decision, { kind: 'joined' }>

const OUTCOMES = {
  read: 'received',
  acknowledged: 'acknowledged',
  full: 'acknowledged',
  waiting: 'waiting',
  resolved: 'resolved',
  silenced: 'silenced',
} as const satisfies Readonly<Record<Taken['kind'], AlertOutcome>>

function outcomeOf(decision: Taken, now: Date) {
  return {
    outcome: OUTCOMES[decision.kind],
    waiting_since: decision.kind === 'waiting' ? now : null,
    due_at: decision.kind === 'waiting' ? decision.due : null,
    silence: decision.kind === 'silenced' ? decision.silence : null,
  } as const
}
