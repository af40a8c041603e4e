import type { Database } from '../../db/client.ts'
import { noticeQueries as q, type DueSend, type Notice } from '../../db/notices.ts'
import type { Log } from '../../kernel/log.ts'
import { shorten } from '../../kernel/markup.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat, reportsTo } from '../../kernel/repeat.ts'
import type { SecretBox } from '../../kernel/secret-box.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Address } from './address.ts'
import { isQuiet } from './quiet.ts'
import type { ListedSend, Message } from './kinds.ts'
import { pageOf, type SiteUrl } from './list.ts'
import { reconcileNotices, type Firing } from './notices.ts'
import { nextMessage, STAGES } from './pace.ts'
import { sendMessage } from './send.ts'
import { noticeOfAll } from './storm.ts'
import { readTargets, type Target } from './targets.ts'

export interface NotifyOptions {
  db: Database
  clock: Clock
  log: Log
  metrics: Metrics
  /** The addresses of the configuration, read for each round. */
  notifyUrls: () => readonly Address[]
  /** Opens the targets of the database; undefined without a key. */
  secretBox: () => SecretBox | undefined
  siteUrl: SiteUrl
}

const ROUND_MS = 1_000
/** What is older is no news to a target that is new. */
const NEWS_MS = 24 * 3_600_000
/** The others hear of a target that has failed for this long. */
const FAILING_MS = 10 * 60_000
/** The number of the send that tells that somebody has acknowledged a notice. */
const ACKNOWLEDGED = -1
const MAX_FAILING = 100
/** A target that took nothing is tried again after this time at the earliest. */
const RETRY_MS = 10_000
/** More than a storm has; what is beyond is of the next message. */
const MAX_DUE = 1_000
const MAX_LISTED_TEXT = 500

/**
 * Sends the notices of all instances to each target. What a target gets is a row: claimed, sent,
 * and marked as sent; one that is not taken is sent again until it is. Several are one message. A
 * notice whose acknowledgement is lost is sent again, with the same idempotency key. A target that
 * hangs holds up no other.
 */
export function startNotifier(options: NotifyOptions) {
  const { db, clock, log, metrics, notifyUrls, secretBox, siteUrl } = options
  const sent = metrics.counter('gatehouse_ops_notices', 'Notices by what came of a try.')
  const stopping = new AbortController()
  /** The targets that are sent to now. */
  const sending = new Map<string, Promise<void>>()
  /** The targets that took nothing at the last try. */
  const refusing = new Set<string>()
  /** Why what is due could not be read or recorded since the last round. */
  let failure: unknown

  /** Sends what is due to a target, until something is not taken. */
  async function sendDue(target: Target): Promise<void> {
    const { name, address } = target
    while (!stopping.signal.aborted) {
      const message = await claimMessage(db, target, clock.now())
      if (message === undefined) return
      const failed =
        'problem' in address
          ? { problem: address.problem, waitMs: 0 }
          : await sendMessage(address, messageOf(message, siteUrl), stopping.signal)
      const { problem, waitMs = 0 } = failed ?? {}
      sent.add({ outcome: problem === undefined ? 'sent' : 'failed' })
      // What a stop has interrupted is no problem of the receiver.
      if (problem !== undefined && stopping.signal.aborted) return
      logOutcome(name, message.sends[0].id, problem)
      const now = clock.now()
      const next_at = new Date(now.getTime() + Math.max(RETRY_MS, waitMs))
      const sends = message.sends.map(({ id, number }) => ({ id, number }))
      await q.finishSends(db, { target: name, sends, problem: problem ?? null, now, next_at })
      if (problem !== undefined) return
    }
  }

  /** Logs once when a target stops taking notices, and once when it takes one again. */
  function logOutcome(target: string, notice: number, problem: string | undefined): void {
    if (problem !== undefined && !refusing.has(target)) {
      log.warn('notice not taken, tried again later', { target, notice, problem })
    }
    if (problem === undefined && refusing.has(target)) {
      log.info('notices are taken again', { target })
    }
    if (problem === undefined) refusing.delete(target)
    else refusing.add(target)
  }

  function begin(target: Target): void {
    if (sending.has(target.name)) return
    const job = sendDue(target)
      .catch((error: unknown) => void (failure = error))
      .finally(() => sending.delete(target.name))
    sending.set(target.name, job)
  }

  async function plan(targets: readonly Target[], now: Date): Promise<void> {
    const aDayAgo = new Date(now.getTime() - NEWS_MS)
    const planned = targets.map(({ name, services, levels, after_s, since = aDayAgo }) => {
      return { name, services, levels, after_s, since: since > aDayAgo ? since : aDayAgo }
    })
    if (planned.length > 0) await q.planSends(db, { targets: planned, now })
    const hearing = targets.filter(hearsOfAcknowledgements).map(({ name }) => name)
    if (hearing.length > 0) await q.planAcknowledgements(db, { targets: hearing, now })
    const reminded = targets.filter(({ remind_s }) => remind_s !== null)
    if (reminded.length === 0) return
    const reminders = reminded.map(({ name, remind_s }) => ({ name, remind_s }))
    await q.planReminders(db, { targets: reminders, now })
  }

  async function round(): Promise<void> {
    const targets = await readTargets(db, notifyUrls(), secretBox)
    const now = clock.now()
    await reconcileTargets(db, targets, now)
    await plan(targets, now)
    for (const target of targets) begin(target)
    if (failure === undefined) return
    const error = failure
    failure = undefined
    throw error
  }

  const reports = reportsTo(log, 'notices not looked up', 'notices are looked up again')
  const rounds = repeat(clock, ROUND_MS, 'notices', round, reports)
  return {
    /** Plans and begins now what is due. */
    round: rounds.now,
    /** Resolves when nothing is being sent. */
    async settled(): Promise<void> {
      await Promise.all(sending.values())
    },
    async close(): Promise<void> {
      stopping.abort()
      await rounds.stop()
      await Promise.all(sending.values())
    },
  }
}

/** Whether an acknowledgement changes something at a target: only PagerDuty knows of them. */
function hearsOfAcknowledgements({ address }: Target): boolean {
  return 'kind' in address && address.kind === 'pagerduty'
}

/** Notifies the other targets once that a target fails, and once that it works again. */
function reconcileTargets(db: Database, targets: readonly Target[], now: Date): Promise<void> {
  const names = targets.map(({ name }) => name)
  const since = new Date(now.getTime() - FAILING_MS)
  const group = { service: 'gatehouse', site: 'ops', prefix: 'target ', now } as const
  return reconcileNotices(db, group, async (executor) => {
    const failing = await q.listFailingTargets(executor, { since, names, limit: MAX_FAILING })
    return failing.map(({ target }): Firing => {
      const message = `Notices are not taken by ${target}: they are tried again`
      const key = `target ${target}`
      return { key, level: 'critical', message, path: '/notices', aboutTarget: target }
    })
  })
}

/**
 * Claims what a target gets next, one notice or several as one message; undefined when nothing may be
 * sent now. One instance at a time chooses.
 */
async function claimMessage(
  db: Database,
  { name: target, address, quiet: hours }: Target,
  now: Date,
): Promise<ClaimedMessage | undefined> {
  // Asked every second, so without a lock.
  if (!(await q.hasDue(db, { target, now })).due) return undefined
  const receiver = 'kind' in address && address.kind === 'pagerduty' ? 'pagerduty' : 'people'
  const quiet = hours !== null && isQuiet(hours, now)
  return db.transaction(async (tx) => {
    await q.lockTarget(tx, { target })
    const due = await q.listDue(tx, { target, now, quiet, limit: MAX_DUE })
    const paces = await q.listPaces(tx, { target, limit: STAGES.length })
    const next = nextMessage(due, paces, receiver, now)
    if (next === undefined) return undefined
    const { sends, pace, incident } = next
    const claimed = sends.map(({ id, number }) => ({ id, number }))
    await q.claimSends(tx, { target, sends: claimed, incident, now })
    await q.setPace(tx, { target, ...pace })
    return { sends, incident: incident ?? sends[0].incident }
  })
}

/** What is sent now, and the notice whose key PagerDuty knows it by. */
interface ClaimedMessage {
  sends: readonly [DueSend, ...DueSend[]]
  incident: number
}

/** Notices as they are sent, with the link to what they are about. */
function messageOf({ sends, incident }: ClaimedMessage, siteUrl: SiteUrl): Message {
  const [first] = sends
  const notice = sends.length === 1 ? noticeOf(first) : noticeOfAll(sends)
  const { number } = first
  const { id, lasts } = notice
  const several = sends.length === 1 ? '' : `-and-${sends.length - 1}`
  const key = `notice-${id}${several}`
  return {
    notice,
    all: sends.length === 1 ? [] : sends.map((send) => listedSend(send, siteUrl)),
    number,
    incident,
    site: siteUrl('ops'),
    key: number === 0 ? key : `${key}-${number === ACKNOWLEDGED ? 'acknowledged' : number}`,
    link: pageOf(notice, siteUrl),
    acknowledge: lasts ? `${siteUrl('ops')}/notices/${id}` : null,
  }
}

function noticeOf({
  number: _number,
  stage: _stage,
  key: _key,
  incident: _incident,
  ...notice
}: DueSend): Notice {
  return notice
}

function listedSend(send: DueSend, siteUrl: SiteUrl): ListedSend {
  const { id, begin_id, level, service } = send
  const message = shorten(send.message, MAX_LISTED_TEXT)
  return { id, begin_id, level, service, message, url: pageOf(send, siteUrl) }
}

/** Sends a notice that is stored nowhere. Gives why it was not taken, or undefined. */
export async function testTarget(
  { address }: Target,
  now: Date,
  baseUrl: string,
): Promise<string | undefined> {
  if ('problem' in address) return address.problem
  const send: DueSend = {
    id: 0,
    session_id: null,
    kind: 'event',
    level: 'info',
    service: 'gatehouse',
    message: 'A test of `gatehouse notify test`: nothing has happened.',
    site: 'ops',
    path: '/notices',
    created_at: now,
    lasts: false,
    begin_id: null,
    number: 0,
    stage: 'beginning',
    key: null,
    incident: 0,
  }
  const told = messageOf({ sends: [send], incident: 0 }, () => baseUrl)
  const message = { ...told, key: `notice-test-${now.getTime()}` }
  return (await sendMessage(address, message, new AbortController().signal))?.problem
}
