import type { Database } from '../../../../db/client.ts'
import { sessionQueries as q, type Line } from '../../../../db/ops/agent/sessions.ts'
import { createFeed, type Feed } from '../../../../kernel/http/feed.ts'
import type { Sink } from '../../../../kernel/http/reply.ts'
import { encodeFrame, encodeRetry } from '../../../../kernel/http/sse.ts'
import { messageOf } from '../../../../kernel/log.ts'
import type { NotifyOptions } from '../../../notices/sender.ts'
import type { Sessions } from './sessions.ts'

/** The live output of sessions (decisions.md section 5, Output), whichever instance runs them. */
export type LineStream = Awaited<ReturnType<typeof openLineStream>>

const MAX_CLIENTS = 1_024
/** Lines have up to 16 KiB each: a page alone cuts no client off. */
const PAGE_SIZE = 50
const RETRY_MS = 2_000
const KEEP_ALIVE_MS = 15_000
/** Finds the lines of a notification that was lost. */
const POLL_MS = 5_000
/** The largest number that a line can have. */
export const MAX_SEQ = 2_147_483_647

type StreamParts = Pick<NotifyOptions, 'db' | 'clock' | 'log' | 'metrics'>

export async function openLineStream(parts: StreamParts, sessions: Pick<Sessions, 'onChange'>) {
  const { db, clock, log } = parts
  const { feeds, feedOf, countClients } = openFeeds(parts)
  let closed = false

  function refreshAll() {
    for (const feed of feeds.values()) feed.refresh()
  }

  await db.listen('ops_lines', (session) => {
    if (session === undefined) refreshAll()
    else feeds.get(Number(session))?.refresh()
  })
  sessions.onChange(refreshAll)
  const stopPolls = clock.every(POLL_MS, refreshAll)
  const stopKeepAlive = clock.every(KEEP_ALIVE_MS, () => {
    for (const feed of feeds.values()) feed.keepAlive()
  })

  return {
    /** False if as many clients as this process serves are connected. */
    get hasRoom() {
      return countClients() < MAX_CLIENTS
    },
    /** Streams the lines of a session after a number, and then how it ended. */
    connect(sink: Sink, session: number, after: number) {
      // Not a refusal, after which a browser would never come back.
      if (closed) return sink.end(encodeRetry(RETRY_MS))
      // A client whose number the session has not reached followed something else.
      const begin = async () => (after > (await newestLine(db, session)) ? 0 : after)
      feedOf(session)
        .follow(sink, { begin })
        .catch((error: unknown) => {
          // The client comes back after `retry` and continues where it was.
          log.warn('session output not replayed', { session, error: messageOf(error) })
          sink.end()
        })
    },
    /** The lines of a session, page by page, until its end or the abort. */
    pages: (session: number, gone: AbortSignal) => feedOf(session).pages(0, gone),
    /** Ends every stream in order; tells clients when to come back. */
    close() {
      closed = true
      stopPolls()
      stopKeepAlive()
      for (const feed of feeds.values()) feed.close()
    },
  }
}

/** The feeds of the sessions that somebody follows. */
function openFeeds({ db, log, metrics }: StreamParts) {
  const feeds = new Map<number, Feed<Line>>()
  const countClients = () => feeds.values().reduce((count, { clients }) => count + clients, 0)
  const cutOff = metrics.counter(
    'gatehouse_ops_stream_cut_off',
    'Clients of session output cut off for not reading.',
  )
  metrics.gauge('gatehouse_ops_stream_clients', 'Connected clients of session output.', () => [
    [{}, countClients()],
  ])

  const feedOf = (session: number) => feeds.getOrInsertComputed(session, openFeed)
  function openFeed(session: number) {
    const feed: Feed<Line> = createFeed({
      newest: () => newestLine(db, session),
      read: (after, limit) => readPage(db, { session, after, limit }),
      positionOf: ({ seq }) => seq,
      encode: (line) => encodeFrame({ event: 'line', id: line.seq, data: JSON.stringify(line) }),
      pageSize: PAGE_SIZE,
      retryMs: () => RETRY_MS,
      idle() {
        if (feeds.get(session) === feed) feeds.delete(session)
      },
      cutOff: () => cutOff.add({}),
      failed: (error) => log.warn('session output not read', { session, error: messageOf(error) }),
    })
    return feed
  }
  return { feeds, feedOf, countClients }
}

async function newestLine(db: Database, session: number) {
  const [line] = await q.listLinesBefore(db, { session, before: MAX_SEQ, limit: 1 })
  return line?.seq ?? 0
}

/** Ends the feed with how the session ended, once all its lines are read. */
async function readPage(db: Database, page: { session: number; after: number; limit: number }) {
  // The status comes first: all lines of a session that has ended are stored.
  const { status } = (await q.findStatus(db, { id: page.session })) ?? { status: 'failed' }
  const items = await q.listLines(db, page)
  if (status === 'running' || items.length === page.limit) return { items }
  return { items, end: encodeFrame({ event: 'done', data: JSON.stringify({ status }) }) }
}
