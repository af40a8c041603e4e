import { setTimeout as pause } from 'node:timers/promises'
import { createClient, ErrorReply, RESP_TYPES } from '@redis/client'
import type { OpenSession } from './consumer.ts'
import type { QueueEntry } from './entries.ts'

/** All instances of one database read as one group: each entry goes to one of them. */
const GROUP = 'gatehouse'
/** A read waits this long for entries; an answer to anything may take this much longer. */
const WAIT_MS = 2_000
const ANSWER_MS = 5_000
/** Entries that stay unacknowledged for this long belong to a consumer that died. */
const ABANDONED_MS = 10_000
const CLAIM_EVERY_MS = 5_000
/** Consumers without entries that read nothing for this long are removed from the group. */
const GONE_MS = 3_600_000

/** Redis and Valkey streams by consumer group (Redis 6.2 or newer). */
export const openRedis: OpenSession = async ({ url, channel, consumer, clock }, signal) => {
  const { reader, main } = await connectBoth(url, signal)
  await createGroup(main, channel)
  await forgetGoneConsumers(main, channel)
  const readerId = await answer(reader.clientId())
  let claimCursor = '0-0'
  let claimedAt = Number.NEGATIVE_INFINITY

  /** Takes over what dead consumers left, also what this one lost with an earlier connection. */
  async function claim(limit: number): Promise<readonly QueueEntry[]> {
    const reply = await answer(
      main.xAutoClaim(channel, GROUP, consumer, ABANDONED_MS, claimCursor, { COUNT: limit }),
    )
    claimCursor = reply.nextId.toString()
    if (claimCursor === '0-0') claimedAt = clock.elapsed()
    return entriesOf(reply.messages)
  }

  async function read(limit: number): Promise<readonly QueueEntry[]> {
    const from = { key: channel, id: '>' }
    const reading = reader.xReadGroup(GROUP, consumer, from, { COUNT: limit, BLOCK: WAIT_MS })
    const reply = await answer(reading, WAIT_MS + ANSWER_MS)
    return entriesOf(reply?.[0]?.messages ?? [])
  }

  /** Ends a waiting read without losing what it may have been given already. */
  async function unblock(done: () => boolean): Promise<void> {
    try {
      while (!done()) {
        await answer(main.clientUnblock(readerId), 1_000)
        await pause(20)
      }
    } catch {
      // Not allowed to, or no answer: the connection goes, and its entries are claimed later.
      reader.destroy()
    }
  }

  return {
    async receive(limit, stop) {
      if (clock.elapsed() - claimedAt >= CLAIM_EVERY_MS) {
        const claimed = await claim(limit)
        if (claimed.length > 0) return claimed
      }
      if (stop.aborted) return []
      let ended = false
      const interrupt = (): void => void unblock(() => ended)
      stop.addEventListener('abort', interrupt)
      try {
        return await read(limit)
      } finally {
        ended = true
        stop.removeEventListener('abort', interrupt)
      }
    },
    async acknowledge(ids) {
      await answer(main.xAck(channel, GROUP, [...ids]))
    },
  }
}

/** A waiting read holds its connection: acknowledgements go over another one. */
async function connectBoth(url: string, signal: AbortSignal) {
  const [reader, main] = [connectionTo(url), connectionTo(url)]
  function end(): void {
    for (const client of [reader, main]) {
      client.unref()
      client.destroy()
    }
  }
  signal.addEventListener('abort', end)
  await Promise.all(
    [reader, main].map((client) =>
      // Destroyed while it connects, a client still connects and has to be destroyed again.
      client.connect().finally(() => signal.aborted && end()),
    ),
  )
  return { reader, main }
}

async function createGroup(main: Connection, channel: string): Promise<void> {
  try {
    await answer(main.xGroupCreate(channel, GROUP, '0', { MKSTREAM: true }))
  } catch (error) {
    // An error reply BUSYGROUP: the group is there already, which is what we want.
    if (!(error instanceof ErrorReply) || !error.message.startsWith('BUSYGROUP')) throw error
  }
}

/** Each process is a consumer of its own name, so the list would grow with every restart. */
async function forgetGoneConsumers(main: Connection, channel: string): Promise<void> {
  for (const { name, pending, idle } of await answer(main.xInfoConsumers(channel, GROUP))) {
    if (pending > 0 || idle < GONE_MS) continue
    await answer(main.xGroupDelConsumer(channel, GROUP, name))
  }
}

/** Connects and waits for an answer. Throws if none comes in time, or if the broker refuses. */
export async function pingRedis(url: string, limitMs: number): Promise<void> {
  const client = connectionTo(url)
  try {
    await answer(
      client.connect().then(() => client.ping()),
      limitMs,
    )
  } finally {
    client.unref()
    client.destroy()
  }
}

type Connection = ReturnType<typeof connectionTo>

/**
 * A client that does not reconnect: the consumer opens a new session, for any broker in the same
 * way.
 */
function connectionTo(url: string) {
  return createClient({
    url,
    RESP: 2,
    socket: { reconnectStrategy: false, connectTimeout: ANSWER_MS },
    maintNotifications: 'disabled',
    // Bytes as they are, and the fields in order: an object would lose repeated names.
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.MAP]: Array } },
    // Its errors also reject the commands, which is where they are handled.
  }).on('error', () => undefined)
}

/** The client waits for ever for an answer of a host that is gone; we don't. */
async function answer<T>(pending: Promise<T>, limitMs = ANSWER_MS): Promise<T> {
  const late = pause(limitMs, undefined, { ref: false }).then(() => {
    throw new Error(`Redis has not answered within ${limitMs} ms`)
  })
  return Promise.race([pending, late])
}

/** What the client gives of an entry: names and values in turn; bytes, by the mapping above. */
type Message = { id: Buffer; message: readonly (Buffer | string)[] }

function entriesOf(messages: readonly (Message | null)[]): readonly QueueEntry[] {
  return messages.flatMap((found) => {
    // Redis 6.2 gives null for an entry that was deleted while a consumer had it.
    if (found === null) return []
    const fields: [string, Buffer][] = []
    for (let at = 0; at + 1 < found.message.length; at += 2) {
      const [name = '', value = ''] = found.message.slice(at, at + 2)
      fields.push([name.toString(), typeof value === 'string' ? Buffer.from(value) : value])
    }
    return [{ id: found.id.toString(), fields }]
  })
}
