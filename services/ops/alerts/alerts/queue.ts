import { alertQueries as q, type TakenAlert } from '../../../../db/ops/alerts/alerts.ts'
import type { Executor } from '../../../../db/client.ts'
import { sessionQueries } from '../../../../db/ops/agent/sessions.ts'
import { repeat, reportsTo } from '../../../../kernel/repeat.ts'
import { beginNotice, endNotice } from '../../notices.ts'
import type { Sessions } from '../../agent/sessions/sessions.ts'
import { listSilences, silenceOf } from '../silences.ts'
import type { BriefOptions } from './brief.ts'
import { MAX_WAITING } from './outcome.ts'
import { readAlert, readPayload } from './payload.ts'

interface QueueOptions extends Pick<BriefOptions, 'db' | 'clock' | 'log' | 'reader' | 'redact'> {
  sessions: Pick<Sessions, 'onChange'>
}

const ROUND_MS = 5_000
/** Released at a time. */
const MAX_RELEASED = 50
/** The key of the notice that too many wait, and what its events are about. */
const FULL = 'alert queue'
const ABOUT = { session: null, service: 'gatehouse' } as const

/**
 * Has the alert read that has waited longest, once it is due and no session runs. What waits
 * stands in the database: any instance goes on with it. Ends of sessions wake it.
 */
export function startQueue(
  options: QueueOptions,
  read: (taken: TakenAlert, newest: number) => Promise<void>,
) {
  const { db, clock, log, reader, redact, sessions } = options

  async function round(isStopped: () => boolean): Promise<void> {
    await releaseSilenced(options)
    await endFullQueue(options)
    while (!isStopped()) {
      const now = clock.now()
      const { waiting } = await q.countInProgress(db, {})
      const taken = waiting > 0 ? await takeWaiting(options, now) : undefined
      if (taken === undefined) return
      const { members } = readAlert(readPayload(Buffer.from(taken.payload)), redact)
      const silence = silenceOf(await listSilences(db, now), { ...taken, members }, now)
      if (silence === undefined) {
        const { newest } = await sessionQueries.readSessionState(db, {})
        return read(taken, newest)
      }
      await q.holdBack(db, { ...taken, ...reader, silence: silence.id })
    }
  }

  const reports = reportsTo(log, 'waiting alerts not read', 'waiting alerts are read again')
  const rounds = repeat(clock, ROUND_MS, 'waiting alerts', round, reports)
  sessions.onChange(() => void rounds.now())
  return rounds
}

function takeWaiting({ db, reader }: QueueOptions, now: Date) {
  return db.transaction(async (tx) => {
    await q.lockAlerts(tx, {})
    return q.takeWaiting(tx, { ...reader, now })
  })
}

/** Alerts that still fire wait for a session when their silence is over, once each. */
async function releaseSilenced({ db, clock }: QueueOptions): Promise<void> {
  const now = clock.now()
  const [silenced] = await q.listUnsilenced(db, { now, limit: 1 })
  if (silenced === undefined) return
  await db.transaction(async (tx) => {
    await q.lockAlerts(tx, {})
    const { waiting } = await q.countInProgress(tx, {})
    const silences = await listSilences(tx, now)
    const limit = Math.min(MAX_RELEASED, Math.max(0, MAX_WAITING - waiting))
    for (const alert of await q.listUnsilenced(tx, { now, limit })) {
      const next = silenceOf(silences, alert, now)?.id ?? null
      await q.releaseAlert(tx, { id: alert.id, silence: alert.silence_id, next, now })
    }
  })
}

/** Notifies operators once when alerts begin to be turned away because too many wait. */
export async function noteFullQueue(tx: Executor, now: Date): Promise<void> {
  if ((await q.beginFullQueue(tx, { now })) === undefined) return
  const message =
    `${MAX_WAITING} alerts wait for a session: further ones are kept, ` +
    'but start nothing by themselves'
  await beginNotice(tx, { ...ABOUT, level: 'critical', message, now }, FULL, {
    path: '/alerts',
  })
}

/** It is over when half of them are done: at the bound it would begin and end with each alert. */
async function endFullQueue({ db, clock }: QueueOptions): Promise<void> {
  const { queue_full_since: since } = await q.readFullQueue(db, {})
  if (since === null) return
  await db.transaction(async (tx) => {
    const now = clock.now()
    if ((await q.endFullQueue(tx, { most: MAX_WAITING / 2 })) === undefined) return
    const message = `Alerts are queued again: fewer than ${MAX_WAITING / 2} wait`
    await endNotice(tx, { ...ABOUT, level: 'info', message, now }, FULL)
  })
}
