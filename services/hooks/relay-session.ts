import { saveAttempt } from '../../db/hooks/attempts.ts'
import { streamBounds } from '../../db/hooks/events.ts'
import { moveForwarder } from '../../db/hooks/forwarders.ts'
import type { Attached, Attempt, StoredEvent } from '../../db/hooks/rows.ts'
import { findEventAfter, readsPayloads, searchWindowThrough } from '../../db/hooks/search.ts'
import type { Database } from '../../db/client.ts'
import type { Channel } from '../../kernel/http/websocket.ts'
import type { Clock } from '../../kernel/time.ts'
import { Unavailable } from '../../kernel/fault.ts'
import { messageOf, type Log } from '../../kernel/log.ts'
import type { Counter } from '../../kernel/metrics.ts'
import { eventTest } from './log-filter.ts'
import { headersToSend, NO_SECRET, type Signers } from './outgoing-event.ts'
import {
  readClientMessage,
  type ClientMessage,
  type RelayResult,
  type ServerMessage,
} from './relay-protocol.ts'
import type { RelayRequest } from './relay-request.ts'
import type { SearchSlot } from './search-slot.ts'
import type { EventStream } from './stream.ts'
import { isSuccess } from './target-answer.ts'
import { cleanText } from './event-fields.ts'

/** What a forwarder is served with. */
export interface RelayOptions extends Signers {
  readonly db: Database
  readonly stream: Pick<EventStream, 'watch'>
  /** Forwarders that filter by payload search one after the other, a step each. */
  readonly searchSlot: SearchSlot
  readonly clock: Clock
  readonly log: Log
  /** Counts attempts by outcome. */
  readonly forwarded: Counter
}

/** A forwarder that has connected, and where it stands. */
export interface Forwarder extends Attached {
  readonly request: RelayRequest
}

export interface Session {
  readonly forwarder: Forwarder
  /** A newer connection has the name. */
  replaced(): void
  /** The program stops. Resolves, as `over` does, when nothing is written any more. */
  close(): Promise<void>
  readonly over: Promise<void>
}

/** How many ids one statement looks through for the next event that is wanted. */
const WINDOW = 10_000
/** The same where the payload decides, at most: each one is read. */
const SEARCH_WINDOW = 2_000

/** A forwarder that plays by the rules has a result and a `next` under way, never more. */
const UNANSWERED = 2

/**
 * Serves one forwarder: it asks, is sent one event, says what came of it, asks again. So the server
 * keeps no more than the event that is being sent, however slow the target is, and what is sent
 * again after a failure is signed anew.
 */
export function startSession(
  options: RelayOptions,
  channel: Channel,
  forwarder: Forwarder,
): Session {
  const { db, stream, searchSlot, clock, log, registry, forwarded } = options
  const { request } = forwarder
  const searches = readsPayloads(request.payload)
  const wants = eventTest(request.provider, request.event_type) ?? (() => true)
  /** No event up to this one is wanted any more; `kept` is what the database knows of that. */
  let position = forwarder.position
  let kept = position
  let sent: { readonly id: number; readonly refused: string | null } | undefined
  let told = 0
  let unanswered = 0
  let ended = false
  let arrival = Promise.withResolvers<void>()

  const watching = stream.watch({
    items: (events) => {
      if (events.some(wants)) arrival.resolve()
    },
    over: () => undefined,
  })
  let turn = inTurn(Promise.resolve(), start)

  channel.onMessage((received) => {
    const message = readClientMessage(received)
    if (message === undefined || unanswered === UNANSWERED) return breach()
    unanswered++
    turn = inTurn(turn, () => answer(message))
  })
  const over = channel.ended.then(async () => {
    ended = true
    watching.stop()
    arrival.resolve()
    // A result that came before the end counts.
    await turn
  })

  async function inTurn(before: Promise<void>, work: () => Promise<void>): Promise<void> {
    await before
    try {
      await work()
    } catch (error) {
      const down = error instanceof Unavailable
      log[down ? 'warn' : 'error']('forwarder not served', { error: messageOf(error) })
      channel.close(1013, 'The database is out of reach; try again shortly.')
    }
  }

  function tell(message: ServerMessage): void {
    channel.send(JSON.stringify(message))
  }

  function breach(): void {
    channel.close(1008, 'The messages do not follow the relay protocol.')
  }

  async function start(): Promise<void> {
    await watching.ready
    const { name, provider } = request
    const provider_known = provider === null || registry.provider(provider) !== undefined
    tell({ type: 'ready', name, position, known: forwarder.connection > 1, provider_known })
  }

  async function answer(message: ClientMessage): Promise<void> {
    if (message.type === 'result' && message.id === sent?.id) await settle(message, sent)
    else if (message.type === 'next' && sent === undefined) await sendNext()
    else breach()
    unanswered--
  }

  async function sendNext(): Promise<void> {
    for (;;) {
      arrival = Promise.withResolvers<void>()
      const { newest, pruned_through } = await streamBounds(db, 0)
      if (pruned_through > Math.max(position, told)) {
        told = pruned_through
        tell({ type: 'gap', removed_through: pruned_through })
      }
      while (position < newest && !ended) {
        const event = searches
          ? await searchStep(newest)
          : await findThrough(Math.min(newest, position + WINDOW))
        if (event !== undefined) return sendEvent(event)
        if (position - kept >= WINDOW) await keep()
      }
      if (!ended) await arrival.promise
      if (ended) return
    }
  }

  /** Looks through the next payloads when the forwarders before this one have done so. */
  async function searchStep(newest: number): Promise<StoredEvent | undefined> {
    const { free, release } = searchSlot.enter()
    try {
      await free
      if (ended) return undefined
      const last = Math.min(newest, position + SEARCH_WINDOW)
      return await findThrough(await searchWindowThrough(db, position, last))
    } finally {
      release()
    }
  }

  /** The first event that is wanted, up to this id; without one the position moves there. */
  async function findThrough(through: number): Promise<StoredEvent | undefined> {
    const event = await findEventAfter(db, position, through, request, request.payload)
    if (event === undefined) position = through
    return event
  }

  async function sendEvent(event: StoredEvent): Promise<void> {
    const { id, provider, event_type, payload, payload_size } = event
    const headers = headersToSend(event, options, clock.now()) ?? null
    const refused = headers === null ? NO_SECRET : null
    const received_at = event.received_at.toISOString()
    sent = { id, refused }
    tell({ type: 'event', id, provider, event_type, received_at, payload_size, headers, refused })
    if (headers !== null) await channel.sendBytes(payload)
  }

  /** The attempt and the new position are written together. */
  async function settle(
    { id, status, ms, detail, done }: RelayResult,
    { refused }: { readonly refused: string | null },
  ): Promise<void> {
    const at = clock.now()
    const good = isSuccess(status) && refused === null
    const outcome = good ? 'delivered' : refused === null ? 'failed' : 'refused'
    const why = good ? null : (refused ?? cleanText(detail))
    const attempt: Omit<Attempt, 'id'> = {
      ...{ kind: 'forward', target: request.target, outcome, ms, detail: why, at },
      status: refused === null ? status : null,
    }
    const moved = await db.transaction(async (executor) => {
      await saveAttempt(executor, id, attempt)
      return !done || moveForwarder(executor, connection(), id, at)
    })
    forwarded.add({ outcome })
    sent = undefined
    if (done) position = kept = id
    if (!moved) replaced()
  }

  /** Notes a long way without an event that is wanted, so that it is not gone again. */
  async function keep(): Promise<void> {
    if (!(await moveForwarder(db, connection(), position, clock.now()))) return replaced()
    kept = position
  }

  function connection(): { readonly name: string; readonly connection: number } {
    return { name: request.name, connection: forwarder.connection }
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
