import type { Database } from '../../../db/client.ts'
import { type Line, findStatus, listLines } from '../../../db/ops/sessions.ts'
import type { Clock } from '../../../kernel/time.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Metrics } from '../../../kernel/metrics.ts'
import type { Sink } from '../../../kernel/http/reply.ts'
import { encodeFrame, encodeRetry, KEEP_ALIVE } from '../../../kernel/http/sse.ts'
import type { Sessions } from './sessions.ts'

/** The live output of sessions, of `GET /sessions/{id}/stream` (decisions.md section 5, Output). */
export interface LineStream {
  /** False when as many clients as this process serves are connected. */
  readonly hasRoom: boolean
  /** Streams the lines of a session that come after one, and then how it ended. */
  connect(sink: Sink, session: number, after: number): void
  /** Ends every stream in order, with the delay after which the client comes back. */
  close(): void
}

export interface LineStreamOptions {
  readonly db: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly sessions: Pick<Sessions, 'onChange'>
}

interface Client {
  readonly sink: Sink
  /** Number of the last line that it was sent. */
  position: number
}

/** A session that somebody follows: read once, however many follow it. */
interface Followed {
  readonly session: number
  readonly clients: Set<Client>
  /** Clients that have read up to here: none stands before `position`. */
  readonly following: Set<Client>
  /** It only grows: a client that joins has read as far, so that a read on its way leaves no hole. */
  position: number
  reading: boolean
  /** Something came while it was being read. */
  again: boolean
}

/** A client that leaves more than this unsent is cut off and resumes by id. */
const UNSENT = 1024 * 1024
/** A client that is behind is sent no more until this little is unsent. */
const PATIENT = 256 * 1024
const CLIENTS = 1_024
/** Lines of 16 KiB each: a page alone cuts nobody off. */
const PAGE = 50
const RETRY_MS = 2_000
const KEEP_ALIVE_MS = 15_000
/** Heals a notification that was missed. */
const POLL_MS = 5_000

/**
 * A client is replayed from the database until it stands where the session's reader stands, and then
 * follows the reader: no hole, no repeat. Lines of a session commit in order, as one process stores
 * them one batch after the other; which process that is makes no difference here.
 */
export async function openLineStream(options: LineStreamOptions): Promise<LineStream> {
  const { db, clock, log, metrics, sessions } = options
  const followed = new Map<number, Followed>()
  let closing = false

  const cutOff = metrics.counter(
    'gatehouse_ops_stream_cut_off',
    'Clients of session output cut off for not reading.',
  )
  metrics.gauge('gatehouse_ops_stream_clients', 'Connected clients of session output.', () => [
    [{}, countClients()],
  ])

  function countClients(): number {
    let count = 0
    for (const { clients } of followed.values()) count += clients.size
    return count
  }

  function write(to: Followed, client: Client, bytes: Buffer): void {
    client.sink.write(bytes)
    if (client.sink.unsent <= UNSENT) return
    cutOff.add({})
    forget(to, client)
    client.sink.destroy()
  }

  function forget(from: Followed, client: Client): void {
    from.clients.delete(client)
    from.following.delete(client)
    if (from.clients.size === 0 && followed.get(from.session) === from) {
      followed.delete(from.session)
    }
  }

  async function catchUp(to: Followed, client: Client): Promise<void> {
    const [known] = await listLines(db, to.session, client.position - 1, 1)
    // A place that the session has not come to is of something else: it is replayed from its start.
    if (known === undefined) client.position = 0
    while (!client.sink.closed) {
      const lines = await listLines(db, to.session, client.position, PAGE)
      for (const line of lines) {
        client.sink.write(lineFrame(line))
        client.position = line.seq
        if (client.sink.unsent > PATIENT) await client.sink.drained()
        if (client.sink.closed) return
      }
      if (lines.length === PAGE || client.position < to.position) continue
      to.position = Math.max(to.position, to.following.size === 0 ? client.position : 0)
      to.following.add(client)
      look(to)
      return
    }
  }

  /** Reads what is new, and ends the streams of a session that has ended. */
  function look(at: Followed): void {
    at.again = true
    if (at.reading || closing) return
    at.reading = true
    read(at)
      .catch((error: unknown) =>
        // The next notification or poll tries again.
        log.warn('session output not read', { session: at.session, error: messageOf(error) }),
      )
      .finally(() => {
        at.reading = false
        if (at.again && at.following.size > 0) look(at)
      })
  }

  async function read(at: Followed): Promise<void> {
    while (at.again && at.following.size > 0) {
      at.again = false
      // First the status: of a session that has ended, all lines are stored.
      const status = await findStatus(db, at.session)
      const ready = new Set(at.following)
      let lines: readonly Line[]
      do {
        lines = await listLines(db, at.session, at.position, PAGE)
        publish(at, lines)
      } while (lines.length === PAGE && at.following.size > 0)
      if (status === 'running') continue
      const done = encodeFrame({
        event: 'done',
        data: JSON.stringify({ status: status ?? 'failed' }),
      })
      for (const client of ready) {
        if (!at.following.has(client)) continue
        forget(at, client)
        client.sink.end(done)
      }
      // Those who joined meanwhile.
      at.again ||= at.following.size > 0
    }
  }

  function publish(at: Followed, lines: readonly Line[]): void {
    const last = lines.at(-1)
    if (last === undefined) return
    const frames = lines.map(lineFrame)
    const all = Buffer.concat(frames)
    const first = lines[0]?.seq ?? 0
    for (const client of at.following) {
      const { position } = client
      client.position = Math.max(position, last.seq)
      if (position < first) write(at, client, all)
      else if (position < last.seq) {
        const rest = frames.filter((_, index) => (lines[index]?.seq ?? 0) > position)
        write(at, client, Buffer.concat(rest))
      }
    }
    at.position = Math.max(at.position, last.seq)
  }

  function lookAtAll(): void {
    for (const at of followed.values()) look(at)
  }

  await db.listen('ops_lines', (session) => {
    if (session === undefined) return lookAtAll()
    const at = followed.get(Number(session))
    if (at !== undefined) look(at)
  })
  sessions.onChange(lookAtAll)
  const stops = [
    clock.every(POLL_MS, lookAtAll),
    clock.every(KEEP_ALIVE_MS, () => {
      for (const at of followed.values()) {
        for (const client of at.clients) write(at, client, KEEP_ALIVE)
      }
    }),
  ]

  return {
    get hasRoom() {
      return countClients() < CLIENTS
    },
    connect(sink, session, after) {
      // Not a refusal, after which a browser would never come back.
      if (closing) return sink.end(encodeRetry(RETRY_MS))
      const to = followed.get(session) ?? {
        ...{ session, clients: new Set<Client>(), following: new Set<Client>() },
        ...{ position: 0, reading: false, again: false },
      }
      followed.set(session, to)
      const client = { sink, position: after }
      to.clients.add(client)
      sink.onClose(() => forget(to, client))
      sink.write(encodeRetry(RETRY_MS))
      catchUp(to, client).catch((error: unknown) => {
        // The client comes back after `retry` and goes on where it was.
        log.warn('session output not replayed', { session, error: messageOf(error) })
        sink.end()
      })
    },
    close() {
      closing = true
      for (const stop of stops) stop()
      for (const { clients } of followed.values()) {
        for (const { sink } of clients) sink.end(encodeRetry(RETRY_MS))
      }
    },
  }
}

/** One line of output; its number is the id that a client resumes by. */
function lineFrame(line: Line): Buffer {
  return encodeFrame({ event: 'line', id: line.seq, data: JSON.stringify(line) })
}
