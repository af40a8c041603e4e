import type { Database, Executor } from '../../db/client.ts'
import { eventQueries as q, type Event, type Level, type Notice } from '../../db/ops/events.ts'
import { causeOf, codeOf, type Log } from '../../kernel/log.ts'
import type { Clock } from '../../kernel/time.ts'
import type { Metrics } from '../../kernel/metrics.ts'
import { repeat, reportsTo } from '../../kernel/repeat.ts'

const WARNINGS = new Set(['warning', 'warn', 'degraded'])
const CRITICALS = new Set(['critical', 'error', 'err', 'fatal', 'failed', 'failure'])

/**
 * Records an event. Operators are notified of critical ones, unless `notify` says otherwise, and
 * those wait for a person on the dashboard, unless `waits` says otherwise.
 */
export function addEvent(
  db: Executor,
  event: Omit<Parameters<typeof q.addEvent>[1], 'notify' | 'waits'>,
  { notify = event.level === 'critical', waits = event.level === 'critical' } = {},
): Promise<Event> {
  return q.addEvent(db, { ...event, notify, waits })
}

/** Maps an agent's word for a level to the level (decisions.md section 5). */
export function levelOf(word: string): Level {
  const folded = word.trim().toLowerCase()
  if (WARNINGS.has(folded)) return 'warning'
  return CRITICALS.has(folded) ? 'critical' : 'info'
}

export interface NotifyOptions {
  db: Database
  clock: Clock
  log: Log
  metrics: Metrics
  /** Where notices go, read for each one; undefined for no notices. */
  notifyUrl: () => string | undefined
  /** Public address of the service, for links to sessions. */
  baseUrl: () => string
}

const POLL_MS = 1_000
const TIMEOUT_MS = 10_000
const NTFY = 'ntfy+'
const PRIORITY = { critical: 'urgent', warning: 'high', info: 'default' } as const

/**
 * Sends the notices of all instances to `OPS_NOTIFY_URL`. Each is claimed in the database, sent,
 * and marked as sent; one that is not taken is sent again until it is. A notice whose
 * acknowledgement is lost is sent again, with the same idempotency key.
 */
export function startNotifier(options: NotifyOptions): () => Promise<void> {
  const { db, clock, log, metrics, notifyUrl, baseUrl } = options
  const sent = metrics.counter('gatehouse_ops_notices', 'Notices by what came of a try.')
  const stopping = new AbortController()
  let isRefusing = false

  /** Sends the notices that are due, until one is not taken. */
  async function sendDue(): Promise<void> {
    const url = notifyUrl()
    while (url !== undefined) {
      const notice = await q.claimNotice(db, {})
      if (notice === undefined) return
      const problem = await send(url, notice, baseUrl(), stopping.signal)
      sent.add({ outcome: problem === undefined ? 'sent' : 'failed' })
      // What a stop has interrupted is no problem of the receiver.
      if (problem !== undefined && stopping.signal.aborted) return
      logOutcome(notice.id, problem)
      await q.finishNotice(db, { id: notice.id, problem: problem ?? null })
      if (problem !== undefined) return
    }
  }

  /** Logs once when the receiver stops taking notices, and once when it takes one again. */
  function logOutcome(notice: number, problem: string | undefined): void {
    if (problem !== undefined && !isRefusing) {
      log.warn('notice not taken, tried again later', { notice, problem })
    }
    if (problem === undefined && isRefusing) log.info('notices are taken again')
    isRefusing = problem !== undefined
  }
  const reports = reportsTo(log, 'notices not looked up', 'notices are looked up again')
  const polls = repeat(clock, POLL_MS, 'notices', sendDue, reports)
  return () => {
    stopping.abort()
    return polls.stop()
  }
}

/** Why sending failed, or undefined. Never quotes the receiver's address: it may contain a key. */
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
      signal: AbortSignal.any([stopping, AbortSignal.timeout(TIMEOUT_MS)]),
    })
    await response.body?.cancel()
    return response.ok ? undefined : `the receiver answered ${response.status}`
  } catch (error) {
    const cause = causeOf(error)
    return codeOf(cause) ?? (cause instanceof Error ? cause.name : 'no connection')
  }
}

/** What ntfy shows beside the message. Its headers take printable ASCII only. */
function ntfyHeaders({ level, service }: Notice, link: string): Readonly<Record<string, string>> {
  return {
    'content-type': 'text/plain; charset=utf-8',
    title: `Gatehouse: ${service}`.replaceAll(/[^ -~]/g, '?'),
    priority: PRIORITY[level],
    tags: level,
    click: link,
  }
}
