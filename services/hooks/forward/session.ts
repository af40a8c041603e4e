import type { Database, Executor } from '../../../db/client.ts'
import { eventQueries, type StoredEvent } from '../../../db/hooks/events.ts'
import { forwarderQueries, type Attached } from '../../../db/hooks/forwarders.ts'
import { replayQueries } from '../../../db/hooks/replays.ts'
import type { Channel } from '../../../kernel/http/websocket.ts'
import type { Clock } from '../../../kernel/time.ts'
import { Unavailable } from '../../../kernel/fault.ts'
import { messageOf, type Log } from '../../../kernel/log.ts'
import type { Counter } from '../../../kernel/metrics.ts'
import { eventTest, filterOf, readsPayloads } from '../event-filter.ts'
import { STEP_BYTES, type SearchSlot } from '../events.ts'
import { headersToSend, NO_SECRET, type Signers } from '../replays.ts'
import { isSuccess } from '../outgoing.ts'
import {
  readClientMessage,
  type ClientMessage,
  type ForwardResult,
  type ServerMessage,
  type ForwardRequest,
} from './protocol.ts'
import type { EventStream } from '../stream.ts'
import { cleanText } from '../event-fields.ts'

/** What sessions work with. */
export interface SessionOptions extends Signers {
  readonly db: Database
  readonly stream: Pick<EventStream, 'watch'>
  /** Forwarders that filter by payload take turns, step by step. */
  readonly searchSlot: SearchSlot
  readonly clock: Clock
  readonly log: Log
  /** Counts deliveries by outcome. */
  readonly forwarded: Counter
}

/** A forwarder that has connected, and its position. */
export interface ConnectedForwarder extends Attached {
  readonly request: ForwardRequest
}

export interface Session {
  readonly forwarder: ConnectedForwarder
  /** Ends the connection because a newer one has its name. */
  replaced(): void
  /** Ends the connection because the program stops. Resolves as `over` does. */
  close(): Promise<void>
  /** Resolves when the connection has ended and its last result is stored. */
  readonly over: Promise<void>
}

/** Ids that one statement scans for the next event that passes the filters. */
const STEP_IDS = 10_000
/** The same when the statement reads payloads. */
const SEARCH_STEP_IDS = 2_000

/** By the protocol, at most a result and a `next` wait for an answer. */
const MAX_UNANSWERED = 2

/**
 * Serves one forwarder: it asks, gets one event, reports the result, and asks again. So the server
 * holds only one event, however slow the target is, and signs it again for each attempt.
 */
export function startSession(
  options: SessionOptions,
  channel: Channel,
  forwarder: ConnectedForwarder,
): Session {
  const { db, stream, searchSlot, clock, log, registry, forwarded } = options
  const { request } = forwarder
  const filter = filterOf(request)
  const searches = readsPayloads(request)
  const wants = eventTest(request.provider, request.event_type) ?? (() => true)
  /** The forwarder has finished the events up to here; `stored` is the position in the database. */
  let position = forwarder.position
  let stored = position
  let sent: { readonly id: number; readonly refused: string | null } | undefined
  /** The forwarder was told that retention removed the events up to here. */
  let removedThrough = 0
  let unanswered = 0
  let ended = false
  let arrival = Promise.withResolvers<void>()

  const watching = stream.watch({
    items: (events) => {
      if (events.some(wants)) arrival.resolve()
    },
    over: () => undefined,
  })
  let work = after(Promise.resolve(), start)

  channel.onMessage((received) => {
    const message = readClientMessage(received)
    if (message === undefined || unanswered === MAX_UNANSWERED) return endBreach()
    unanswered++
    work = after(work, () => answer(message))
  })
  const over = channel.ended.then(async () => {
    ended = true
    watching.stop()
    arrival.resolve()
    // A result that came before the end is stored.
    await work
  })

  /** Messages are answered one after the other. */
  async function after(before: Promise<void>, next: () => Promise<void>): Promise<void> {
    await before
    try {
      await next()
    } catch (error) {
      const down = error instanceof Unavailable
      log[down ? 'warn' : 'error']('forwarder not served', { error: messageOf(error) })
      channel.close(1013, 'The database is out of reach; try again shortly.')
    }
  }

  function send(message: ServerMessage): void {
    channel.send(JSON.stringify(message))
  }

  function endBreach(): void {
    channel.close(1008, 'The messages do not follow the relay protocol.')
  }

  async function start(): Promise<void> {
    await watching.ready
    const { name, provider } = request
    const provider_known = provider === '' || registry.provider(provider) !== undefined
    send({ type: 'ready', name, position, known: forwarder.connection > 1, provider_known })
  }

  async function answer(message: ClientMessage): Promise<void> {
    if (message.type === 'result' && message.id === sent?.id) await settle(message, sent)
    else if (message.type === 'next' && sent === undefined) await sendNext()
    else endBreach()
    unanswered--
  }

  async function sendNext(): Promise<void> {
    for (;;) {
      arrival = Promise.withResolvers<void>()
      const { newest, pruned_through } = await eventQueries.streamBounds(db, { replayed: 0 })
      if (pruned_through > Math.max(position, removedThrough)) {
        removedThrough = pruned_through
        send({ type: 'gap', removed_through: pruned_through })
      }
      while (position < newest && !ended) {
        const event = searches
          ? await searchStep(newest)
          : await findThrough(Math.min(newest, position + STEP_IDS))
        if (event !== undefined) return sendEvent(event)
        if (position - stored >= STEP_IDS) await storePosition()
      }
      if (!ended) await arrival.promise
      if (ended) return
    }
  }

  /** Reads the next payloads once the search slot is free. */
  async function searchStep(newest: number): Promise<StoredEvent | undefined> {
    const { free, release } = searchSlot()
    try {
      await free
      if (ended) return undefined
      const last = Math.min(newest, position + SEARCH_STEP_IDS)
      const step = { after: position, last, bytes: STEP_BYTES }
      const through = await eventQueries.searchWindowThrough(db, step)
      return await findThrough(through?.id ?? last)
    } finally {
      release()
    }
  }

  /**
   * The first event up to this id that passes the filters; without one the position moves there.
   */
  async function findThrough(last: number): Promise<StoredEvent | undefined> {
    const event = await eventQueries.findEventAfter(db, { after: position, last, ...filter })
    if (event === undefined) position = last
    return event
  }

  async function sendEvent(event: StoredEvent): Promise<void> {
    const { id, provider, event_type, payload, payload_size } = event
    const headers = headersToSend(event, options, clock.now()) ?? null
    const refused = headers === null ? NO_SECRET : null
    const received_at = event.received_at.toISOString()
    sent = { id, refused }
    send({ type: 'event', id, provider, event_type, received_at, payload_size, headers, refused })
    if (headers !== null) await channel.sendBytes(payload)
  }

  /** Stores the result and the new position together. */
  async function settle(
    { id, status, ms, detail, done }: ForwardResult,
    { refused }: { readonly refused: string | null },
  ): Promise<void> {
    const at = clock.now()
    const good = isSuccess(status) && refused === null
    const outcome = good ? 'delivered' : refused === null ? 'failed' : 'refused'
    const why = good ? null : (refused ?? cleanText(detail))
    const result = { outcome, status: refused === null ? status : null, ms, detail: why }
    const replay = { event: id, kind: 'forward', target: request.target, at, ...result }
    const moved = await db.transaction(async (executor) => {
      await replayQueries.saveReplay(executor, replay)
      return !done || (await move(executor, id, at))
    })
    forwarded.add({ outcome })
    sent = undefined
    if (done) position = stored = id
    if (!moved) replaced()
  }

  /** Stores the position after many events that were filtered out: a new connection skips them. */
  async function storePosition(): Promise<void> {
    if (!(await move(db, position, clock.now()))) return replaced()
    stored = position
  }

  /** False when a newer connection has the name. */
  async function move(executor: Executor, to: number, now: Date): Promise<boolean> {
    const { connection } = forwarder
    const moved = { name: request.name, connection, position: to, now }
    return (await forwarderQueries.moveForwarder(executor, moved)) !== undefined
  }

  function replaced(): void {
    channel.close(4409, 'Another forwarder has connected under this name.')
  }

  return {
    forwarder,
    replaced,
    over,
    close() {
      channel.close(1001, 'The server stops; come back shortly.')
      return over
    },
  }
}
