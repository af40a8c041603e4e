import type { Database } from '../../db/client.ts'
import { claimNotice, finishNotice, pruneNotices } from '../../db/ops/notices.ts'
import type { Notice } from '../../db/ops/rows.ts'
import { causeOf, codeOf, messageOf, type Log } from '../../kernel/log.ts'
import { type Clock, openSteadyTime } from '../../kernel/time.ts'
import type { Counter, Metrics } from '../../kernel/metrics.ts'
import { repeat } from '../../kernel/repeat.ts'

export interface NotifyOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  /** Where notices go, looked up each time; undefined when nobody is to be told. */
  readonly notifyUrl: () => string | undefined
  /** Public address of the service, for links to sessions. */
  readonly baseUrl: () => string
}

const LOOK_MS = 1_000
const DEADLINE_MS = 10_000
const PRUNE_MS = 3_600_000
/** The query `claimNotice` has it too. */
const NEWS_MS = 86_400_000
const NTFY = 'ntfy+'
const PRIORITY = { critical: 'urgent', warning: 'high', info: 'default' } as const

/**
 * Tells `OPS_NOTIFY_URL` of critical events and failed sessions, whichever instance they happened on:
 * each is claimed in the database, sent, and noted as sent. One that is not taken is tried again for a
 * day. A receiver that answers but whose answer gets lost is told twice; the notice's id says so.
 */
export function startNotifier(options: NotifyOptions): () => Promise<void> {
  const { db, clock, log, metrics, notifyUrl } = options
  const sent = metrics.counter('gatehouse_ops_notices', 'Notices by what came of a try.')
  const stopping = new AbortController()
  const steadyNow = openSteadyTime(clock)
  let pruned = Number.NEGATIVE_INFINITY

  async function look(): Promise<void> {
    const url = notifyUrl()
    while (url !== undefined && (await tellNext(options, url, sent, stopping.signal)));
    const elapsed = clock.elapsed()
    if (elapsed - pruned < PRUNE_MS) return
    pruned = elapsed
    await pruneNotices(db, new Date(steadyNow().getTime() - NEWS_MS))
  }
  const looks = repeat(clock, LOOK_MS, look, {
    fails: (error) => log.warn('notices not looked up', { error: messageOf(error) }),
    works: () => log.info('notices are looked up again'),
  })
  return () => {
    stopping.abort()
    return looks.stop()
  }
}

/** Sends the next notice that is due; false when none is, or when the receiver does not take it. */
async function tellNext(
  options: NotifyOptions,
  url: string,
  sent: Counter,
  stopping: AbortSignal,
): Promise<boolean> {
  const { db, clock, log, baseUrl } = options
  const notice = await claimNotice(db, clock.now())
  if (notice === undefined) return false
  const problem = await send(url, notice, baseUrl(), stopping)
  sent.add({ outcome: problem === undefined ? 'sent' : 'failed' })
  if (problem !== undefined) {
    log.warn('notice not taken, tried again later', { notice: notice.id, problem })
    return false
  }
  await finishNotice(db, notice.id, clock.now())
  return true
}

/** Undefined when the receiver took it; else why not, without its address: that may hold a key. */
async function send(
  url: string,
  notice: Notice,
  baseUrl: string,
  stopping: AbortSignal,
): Promise<string | undefined> {
  const { session_id } = notice
  const link = session_id === null ? `${baseUrl}/events` : `${baseUrl}/sessions/${session_id}`
  const [target, headers, body] = url.startsWith(NTFY)
    ? [url.slice(NTFY.length), ntfyHeaders(notice, link), notice.message]
    : [url, { 'content-type': 'application/json' }, JSON.stringify({ ...notice, url: link })]
  try {
    const response = await fetch(target, {
      method: 'POST',
      headers: { ...headers, 'user-agent': 'gatehouse', 'idempotency-key': `notice-${notice.id}` },
      body,
      redirect: 'error',
      signal: AbortSignal.any([stopping, AbortSignal.timeout(DEADLINE_MS)]),
    })
    await response.body?.cancel()
    return response.ok ? undefined : `the receiver answered ${response.status}`
  } catch (error) {
    const cause = causeOf(error)
    return codeOf(cause) ?? (cause instanceof Error ? cause.name : 'no connection')
  }
}

/** What ntfy shows beside the message; its headers take no other letters than these. */
function ntfyHeaders({ level, service }: Notice, link: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/plain; charset=utf-8',
    title: `Gatehouse: ${service}`.replaceAll(/[^ -~]/g, '?'),
    priority: PRIORITY[level],
    tags: level,
    click: link,
  }
}
