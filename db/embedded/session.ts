import { LEVELS, type Level } from '../levels.ts'
import type { Run } from './engine.ts'
import { eachMessage, errorResponse, join, message, queryMessage, readString } from './protocol.ts'
import { readyIdle, Type } from './protocol.ts'
import type { Request, Statements } from './requests.ts'
import { closeStatements } from './requests.ts'

/** One client connection as the session sees it. */
export interface Client {
  level: Level
  deliver: (bytes: Uint8Array) => void
  /** Ends the connection, with an error when it was not asked for. */
  end: (error?: Error) => void
  statements: Statements
}

/** The engine's one PostgreSQL session, shared by turns. */
export interface Session {
  join: (client: Client) => void
  submit: (client: Client, request: Request) => void
  /** The client asked to be disconnected: it is, once what it sent before has run. */
  finish: (client: Client) => void
  /** The client's connection is gone: its transaction is rolled back. */
  leave: (client: Client) => void
  /** Ends every connection; what was being run is finished first unless the engine has failed. */
  close: (error?: Error) => Promise<void>
}

// The transaction state of ReadyForQuery, and `B` from a message until then.
type State = 'I' | 'T' | 'E' | 'B'

interface Seat {
  client: Client
  queue: Request[]
  channels: Set<string>
  state: State
  finishing: boolean
  gone: boolean
  /** After a refusal, messages are skipped until Sync, as PostgreSQL does after an error. */
  skipping: boolean
  timer?: NodeJS.Timeout
}

/**
 * Shares one PostgreSQL session among connections. A connection owns the session from its first
 * message until ReadyForQuery says that no transaction is open; then the next one in line has its
 * turn: the first one of the most urgent level. One that waits for longer than `turnTimeoutMs` gets an error with SQLSTATE 55P03.
 *
 * Because it is one session, SET without LOCAL, temporary tables and advisory locks are seen by
 * every connection.
 */
export function createSession(run: Run, turnTimeoutMs: number): Session {
  const seats = new Map<Client, Seat>()
  const lines: Readonly<Record<Level, Set<Seat>>> = {
    deliveries: new Set(),
    trusted: new Set(),
    strangers: new Set(),
    extras: new Set(),
  }
  let owner: Seat | undefined
  let chores: Uint8Array[] = []
  let pumping: Promise<void> | undefined
  let wokenAgain = false
  let closed = false

  const enqueue = (seat: Seat): void => {
    const line = lines[seat.client.level]
    line.add(seat)
    seat.timer = setTimeout(() => {
      line.delete(seat)
      for (const request of seat.queue.splice(0)) refuse(seat, request, turnTimeoutMs)
      if (seat.finishing) seat.client.end()
    }, turnTimeoutMs)
  }
  const nextInLine = (): Seat | undefined => {
    for (const level of LEVELS) {
      const [seat] = lines[level]
      if (seat === undefined) continue
      lines[level].delete(seat)
      clearTimeout(seat.timer)
      return seat
    }
    return undefined
  }

  const route = (bytes: Uint8Array<ArrayBuffer>, from?: Seat): void => {
    const answer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    let kept = 0
    const parts: Buffer[] = []
    eachMessage(answer, (type, start, end) => {
      if (type === Type.ready && from !== undefined) {
        from.state = String.fromCharCode(answer[start + 5] ?? 0) as State
      }
      if (type !== Type.notification) return
      parts.push(answer.subarray(kept, start))
      kept = end
      const channel = readString(answer, start + 9).text // after the sender's process id
      for (const seat of seats.values()) {
        if (seat.channels.has(channel)) seat.client.deliver(answer.subarray(start, end))
      }
    })
    parts.push(answer.subarray(kept))
    for (const part of parts) if (part.length > 0) from?.client.deliver(part)
  }

  const serveOwner = async (seat: Seat): Promise<void> => {
    const request = seat.queue.shift()
    if (request === undefined) return
    for (const effect of request.effects) {
      for (const name of effect.listen) seat.channels.add(name)
      for (const name of effect.unlisten) {
        if (name === '*') seat.channels.clear()
        else seat.channels.delete(name)
      }
    }
    const begins = seat.state === 'I'
    seat.state = 'B'
    const result = await run(request.bytes, begins)
    route(result.bytes, seat)
    if (result.checkpointDue) chores.push(queryMessage('checkpoint'))
  }

  const cleanUp = (seat: Seat): void => {
    // Sync first: it may have gone between the messages of an extended query.
    if (seat.state !== 'I') chores.push(message(Type.sync), queryMessage('rollback'))
    const closes = closeStatements(seat.client.statements)
    if (closes.length > 0) chores.push(...closes, message(Type.sync))
  }
  const release = (seat: Seat): void => {
    owner = undefined
    if (seat.gone) cleanUp(seat)
    else if (seat.queue.length > 0) enqueue(seat)
    else if (seat.finishing) seat.client.end()
  }

  const pump = async (): Promise<void> => {
    while (!closed) {
      if (owner === undefined) {
        if (chores.length > 0) route((await run(join(chores.splice(0)), false)).bytes)
        owner = nextInLine()
        if (owner === undefined) return
      } else if (owner.gone || owner.state === 'I') {
        release(owner)
        continue
      } else if (owner.queue.length === 0) {
        if (owner.finishing) owner.client.end() // which comes back as leave()
        return
      }
      await serveOwner(owner)
    }
  }
  const wake = (): void => {
    if (pumping !== undefined) {
      wokenAgain = true
      return
    }
    // Not at once: what wakes it may be in the middle of a change. A failed run means that the
    // engine has failed, which ends everything through close().
    pumping = Promise.resolve().then(pump).then(settle, settle)
  }
  const settle = (): void => {
    pumping = undefined
    if (!wokenAgain) return
    wokenAgain = false
    wake()
  }

  return {
    join: (client) => {
      if (closed) return client.end(new Error('the embedded database is closed'))
      seats.set(client, seatOf(client))
    },
    submit: (client, request) => {
      const seat = seats.get(client)
      if (seat === undefined) return
      if (seat.skipping) return refuse(seat, request, turnTimeoutMs)
      seat.queue.push(request)
      if (seat !== owner && !lines[client.level].has(seat)) enqueue(seat)
      wake()
    },
    finish: (client) => {
      const seat = seats.get(client)
      if (seat === undefined) return
      seat.finishing = true
      if (seat !== owner && seat.queue.length === 0) client.end()
      else wake()
    },
    leave: (client) => {
      const seat = seats.get(client)
      if (seat === undefined) return
      seats.delete(client)
      clearTimeout(seat.timer)
      lines[client.level].delete(seat)
      seat.gone = true
      seat.queue = []
      if (seat !== owner) cleanUp(seat)
      wake()
    },
    close: async (error) => {
      closed = true
      if (error === undefined) await pumping
      for (const client of [...seats.keys()]) client.end(error)
    },
  }
}

function seatOf(client: Client): Seat {
  return {
    client,
    queue: [],
    channels: new Set(),
    state: 'I',
    finishing: false,
    gone: false,
    skipping: false,
  }
}

/** Answers a request in PostgreSQL's place: the connection's turn did not come in time. */
function refuse(seat: Seat, request: Request, turnTimeoutMs: number): void {
  if (!seat.skipping) {
    const text = `another transaction held the embedded database for over ${turnTimeoutMs / 1000} s`
    seat.client.deliver(errorResponse('55P03', text))
  }
  seat.skipping = request.end === Type.flush
  if (!seat.skipping) seat.client.deliver(readyIdle())
}
