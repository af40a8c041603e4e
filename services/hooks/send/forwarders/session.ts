import type { Database } from '../../../../db/client.ts'
import { eventQueries, type StoredEvent } from '../../../../db/hooks/log/events.ts'
import { forwarderQueries, type Attached } from '../../../../db/hooks/send/forwarders.ts'
import type { NotedAttempt } from '../../../../db/hooks/send/replays.ts'
import type { Channel } from '../../../../kernel/http/websocket.ts'
import type { Clock } from '../../../../kernel/time.ts'
import { Unavailable } from '../../../../kernel/fault.ts'
import { messageOf, type Log } from '../../../../kernel/log.ts'
import type { Counter } from '../../../../kernel/metrics.ts'
import { eventTest, filterOf, readsPayloads } from '../../log/events/filter.ts'
import { PAYLOAD_STEP, searchStep, STEP, type SearchSlot } from '../../log/events/events.ts'
import { headersToSend, NO_SECRET, sendersId, type Signers } from '../replays/attempt.ts'
import {
  ClientMessage,
  isDelivered,
  readMessage,
  type ForwardedEvent,
  type ForwardResult,
  BREACH,
  type ServerMessage,
  type ForwardRequest,
} from './protocol.ts'
import type { EventStream } from '../../log/stream.ts'
import { cleanText } from '../../receive/deliveries/fields.ts'

/** What all sessions work with. */
export interface SessionParts extends Signers {
  db: Database
  stream: Pick<EventStream, 'watch'>
  clock: Clock
  log: Log
}

/** The forwarder of a session and its dependencies. */
export interface SessionOptions extends SessionParts {
  /** Forwarders that filter by payload search one step each, in their order. */
  searchSlot: SearchSlot
  /** Counts deliveries by outcome. */
  forwarded: Counter
  channel: Channel
  forwarder: ConnectedForwarder
}

/** A forwarder that has connected, and its position. */
export interface ConnectedForwarder extends Attached {
  request: ForwardRequest
}

export type Session = ReturnType<typeof startSession>

/** A session and its state. */
interface SessionState extends SessionOptions {
  filter: ReturnType<typeof filterOf>
  /**
   * The forwarder has finished the events up to this id; `stored` is the position in the database.
   */
  position: number
  stored: number
  /** The events that it gets before those behind its position, because a person sends them again. */
  again: readonly number[]
  /** The event whose result is awaited. */
  sent?: ForwardedEvent | undefined
  /** Messages that wait for an answer. */
  unanswered: number
  ended: boolean
  /** Resolves when an event came that the forwarder wants or gets again, or at the end. */
  arrival: PromiseWithResolvers<void>
}

/** Filters of the log that forwarders do not have. */
const NO_FURTHER_TESTS = {
  type_like: null,
  test_type: null,
  verified: null,
  header: null,
  header_value: null,
}

/** What is stored of an attempt; a refused event was not sent, whatever the forwarder says. */
function resultOf(
  result: ForwardResult,
  refused: string | null,
): Pick<NotedAttempt, 'outcome' | 'status' | 'detail'> {
  const { status, detail } = result
  if (refused !== null) return { outcome: 'refused', status: null, detail: refused }
  if (isDelivered(result)) return { outcome: 'delivered', status, detail: null }
  return { outcome: 'failed', status, detail: cleanText(detail) }
}

/** By the protocol, at most a result and a `next` wait for an answer. */
const MAX_UNANSWERED = 2

/**
 * Serves one forwarder: it asks, gets one event, reports the result, and asks again. So the server
 * holds only one event, however slow the target is, and signs it again for each attempt.
 */
export function startSession(options: SessionOptions) {
  const { channel, forwarder, registry } = options
  const { request, position } = forwarder
  const wants = eventTest(request.provider, request.event_type) ?? (() => true)
  const session: SessionState = {
    ...options,
    filter: filterOf(request),
    position,
    stored: position,
    again: forwarder.again,
    unanswered: 0,
    ended: false,
    arrival: Promise.withResolvers(),
  }

  const watching = options.stream.watch({
    items: (events) => {
      if (events.some(wants)) session.arrival.resolve()
    },
    over: () => undefined,
  })
  /** Messages are answered one after the other. */
  let work = attempt(session, async () => {
    await watching.ready
    const { name, provider } = request
    const known = forwarder.connection > 1
    const provider_known = provider === '' || registry.provider(provider) !== undefined
    send(channel, { type: 'ready', name, position, known, provider_known })
  })

  channel.onMessage((received) => {
    const message = readMessage(ClientMessage, received)
    if (message === undefined || session.unanswered === MAX_UNANSWERED) {
      return channel.close(1008, BREACH)
    }
    session.unanswered++
    work = work.then(() => attempt(session, () => answer(session, message)))
  })
  /** Resolves when the connection has ended and its last result is stored. */
  const over = channel.ended.then(async () => {
    session.ended = true
    watching.stop()
    session.arrival.resolve()
    // A result that came before the end is stored.
    await work
  })

  return {
    forwarder,
    replaced: () => replaced(channel),
    /** Takes note of the events that a person sends again. */
    sendAgain(ids: readonly number[]): void {
      session.again = ids
      if (ids.length > 0) session.arrival.resolve()
    },
    over,
    /** Ends the connection because the program stops. Resolves as `over` does. */
    close(): Promise<void> {
      channel.close(1001, 'The server stops; come back shortly.')
      return over
    },
  }
}

/** Ends the connection when a step fails. */
async function attempt({ channel, log }: SessionState, step: () => Promise<void>): Promise<void> {
  try {
    await step()
  } catch (error) {
    const down = error instanceof Unavailable
    log[down ? 'warn' : 'error']('forwarder not served', { error: messageOf(error) })
    const what = down ? 'The database is out of reach' : 'Gatehouse failed, and its log says why'
    channel.close(1013, `${what}; try again shortly.`)
  }
}

function send(channel: Channel, message: ServerMessage): void {
  channel.send(JSON.stringify(message))
}

/** Ends the connection because a newer one has its name. */
function replaced(channel: Channel): void {
  channel.close(4409, 'Another forwarder has connected under this name.')
}

async function answer(session: SessionState, message: ClientMessage): Promise<void> {
  const { sent } = session
  if (message.type === 'result' && message.id === sent?.id) await settle(session, message, sent)
  else if (message.type === 'next' && sent === undefined) await sendNext(session)
  else session.channel.close(1008, BREACH)
  session.unanswered--
}

async function sendNext(session: SessionState): Promise<void> {
  const find = session.forwarder.request.coalesce ? findNewest : findNext
  for (;;) {
    session.arrival = Promise.withResolvers<void>()
    const repeated = await findAgain(session)
    if (repeated !== undefined) return sendEvent(session, repeated, true)
    const bounds = await eventQueries.streamBounds(session.db, { replayed: 0 })
    const { newest, pruned_through } = bounds
    if (pruned_through > session.position) {
      session.position = pruned_through
      send(session.channel, { type: 'gap', removed_through: pruned_through })
    }
    while (session.position < newest && !session.ended) {
      const event = await find(session, newest)
      if (event !== undefined) return sendEvent(session, event)
      if (session.position - session.stored >= STEP.rows) await storePosition(session)
    }
    if (!session.ended) await session.arrival.promise
    if (session.ended) return
  }
}

/** The first event that is sent again; retention may have removed some. */
async function findAgain(session: SessionState): Promise<StoredEvent | undefined> {
  for (const id of session.again) {
    const event = await eventQueries.findEvent(session.db, { id })
    if (event !== undefined) return event
    await forgetAgain(session, id, session.clock.now(), [])
  }
  return undefined
}

/** Makes one step towards the newest event. Reads payloads once the search slot is free. */
async function findNext(session: SessionState, newest: number) {
  const { db, forwarder, position: after } = session
  if (!readsPayloads(forwarder.request)) {
    return findThrough(session, Math.min(newest, after + STEP.rows))
  }
  return inSearchSlot(session, async () => {
    const through = await eventQueries.searchWindowThrough(db, { after, ...PAYLOAD_STEP })
    return findThrough(session, through?.id ?? newest)
  })
}

/** Runs one step of a search once the slot is free; undefined if the connection has ended. */
async function inSearchSlot<T>(
  session: SessionState,
  step: () => Promise<T>,
): Promise<T | undefined> {
  const { free, release } = session.searchSlot()
  try {
    await free
    return session.ended ? undefined : await step()
  } finally {
    release()
  }
}

/**
 * The first event up to this id that passes the filters; without one the position moves there.
 */
async function findThrough(session: SessionState, last: number) {
  const { db, position, filter } = session
  const event = await eventQueries.findEventAfter(db, { after: position, last, ...filter })
  if (event === undefined) session.position = last
  return event
}

/**
 * The newest event that passes the filters; without one the position moves to `newest`. Undefined
 * also for one that retention has just removed.
 */
async function findNewest(session: SessionState, newest: number) {
  const id = await findNewestId(session, newest)
  if (id !== undefined) return eventQueries.findEvent(session.db, { id })
  if (!session.ended) session.position = newest
  return undefined
}

async function findNewestId(session: SessionState, newest: number): Promise<number | undefined> {
  const { db, filter, position, forwarder } = session
  const { provider, event_type } = filter
  const from = position + 1
  let before = newest + 1
  if (!readsPayloads(forwarder.request)) {
    const range = { provider, event_type, type_like: null, before, from, limit: 1 }
    const [found] = await eventQueries.listEvents(db, range)
    return found?.id
  }
  for (;;) {
    const wanted = { before, from, limit: 1 }
    const step = await inSearchSlot(session, () => {
      return searchStep(db, { ...filter, ...NO_FURTHER_TESTS }, wanted)
    })
    const found = step?.events[0]
    if (found !== undefined || step?.next === undefined) return found?.id
    before = step.next.id
  }
}

async function sendEvent(session: SessionState, event: StoredEvent, again = false): Promise<void> {
  const { id, provider, event_type, payload, payload_size } = event
  const deliveryId = sendersId(event, session)
  const headers = headersToSend(event, session, session.clock.now(), deliveryId)?.all ?? null
  const refused = headers === null ? NO_SECRET : null
  const received_at = event.received_at.toISOString()
  const summary = { id, provider, event_type, received_at, payload_size }
  session.sent = { type: 'event', ...summary, headers, refused, ...(again && { again }) }
  send(session.channel, session.sent)
  if (headers !== null) await session.channel.sendBytes(payload)
}

/** Stores the result, and the new position if the event is done. */
async function settle(session: SessionState, given: ForwardResult, sent: ForwardedEvent) {
  const { id: event_id, ms, done } = given
  const at = session.clock.now()
  const result = resultOf(given, sent.refused)
  const attempts = [{ event_id, at, ms, ...result, answer: null }]
  const isRepeated = sent.again === true
  if (isRepeated && done) await forgetAgain(session, event_id, at, attempts)
  else await move(session, { position: done ? event_id : null, at, attempts })
  session.forwarded.add({ outcome: result.outcome })
  session.sent = undefined
  if (!done || isRepeated) return
  session.position = event_id
  session.stored = event_id
}

/** Stores the position after many events that were filtered out: a new connection skips them. */
async function storePosition(session: SessionState): Promise<void> {
  await move(session, { position: session.position, at: session.clock.now(), attempts: [] })
  session.stored = session.position
}

/** Stores that an event need not be sent again, with the attempts that were made. */
async function forgetAgain(
  session: SessionState,
  repeated: number,
  at: Date,
  attempts: readonly NotedAttempt[],
): Promise<void> {
  await move(session, { position: null, repeated, at, attempts })
  session.again = session.again.filter((id) => id !== repeated)
}

/** What is stored of a forwarder. */
interface Move {
  position: number | null
  repeated?: number | null
  at: Date
  attempts: readonly NotedAttempt[]
}

/** Ends the connection when a newer one has the name. */
async function move(
  { db, forwarder, channel }: SessionState,
  { position, repeated = null, attempts, at: now }: Move,
): Promise<void> {
  const { request, connection } = forwarder
  const { name, target } = request
  const moved = { name, connection, position, repeated, target, attempts, now }
  const { is_newest } = await forwarderQueries.moveForwarder(db, moved)
  if (!is_newest) replaced(channel)
}
