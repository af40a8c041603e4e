import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { pause } from '../kernel/time.ts'
import { QueryError } from './errors.ts'

/**
 * Who statements run for, the most urgent first. No level can take all that another one needs: on a
 * server each has connections and a waiting list of its own. The embedded engine has one
 * connection, which goes to the most urgent waiting statement.
 *
 * - `deliveries`: storing webhook deliveries.
 * - `trusted`: signed-in people, holders of tokens, the program's own work. The default.
 * - `strangers`: requests that nobody has signed in for.
 * - `extras`: what an answer can do without.
 */
export const LEVELS = ['deliveries', 'trusted', 'strangers', 'extras'] as const

export type Level = (typeof LEVELS)[number]

/** What a level may take. */
export interface Share {
  readonly connections: number
  /** Statements that may wait for a connection; one more is refused at once. */
  readonly waiting: number
  /** Longest wait for a connection, and longest run of a statement, in milliseconds. */
  readonly deadlineMs: number
}

const EXTRAS_MS = 500

/** The shares of all levels; `connections` is that of trusted callers. */
export function sharesOf(connections: number, deadlineMs: number): Readonly<Record<Level, Share>> {
  const quarter = Math.ceil(connections / 4)
  return {
    deliveries: { connections: quarter, waiting: 64, deadlineMs },
    trusted: { connections, waiting: 2_048, deadlineMs },
    strangers: { connections: quarter, waiting: 512, deadlineMs },
    extras: { connections: 1, waiting: 8, deadlineMs: Math.min(EXTRAS_MS, deadlineMs) },
  }
}

/** A client of one connection. */
export interface Client {
  /** The server's name of it. */
  readonly name: string
  readonly sql: postgres.Sql
  /** Destroys its socket at once: TCP would keep a lost connection for a quarter of an hour. */
  readonly cut: () => unknown
}

/** A connection that one statement or transaction has for itself. */
export interface Connection extends Client {
  /** `lost`: it is closed or in doubt, so nothing more may be sent on it. */
  state: 'new' | 'proven' | 'lost'
}

/** Connections, each used by one statement or transaction at a time. */
export interface Pool {
  /**
   * Gives `work` a connection; one that is lost by then is thrown away. Rejects with `Unavailable`:
   * at once when too many of the level wait already.
   */
  use<T>(level: Level, work: (connection: Connection) => Promise<T>): Promise<T>
  /** How many wait for a connection. */
  readonly waiting: number
  close(): Promise<void>
}

export interface PoolOptions {
  readonly connections: number
  readonly shares: Readonly<Record<Level, Share>>
  readonly connect: (onClose: () => void) => Client
  /** Called with the name of a lost connection, after its place is given to the next in line. */
  readonly onLost: (name: string) => void
}

type Accept = (connection: Connection) => void

/** How many seconds running statements have when the program ends. */
export const CLOSING = { timeout: 3 }

/**
 * While a database is away or starting, connection attempts are this far apart, and further the
 * longer it takes.
 */
const MIN_PAUSE_MS = 25
const MAX_PAUSE_MS = 500

/**
 * Opens clients of one connection each, as they are needed. A `postgres` client of several
 * connections mishandles one that dies: its `begin()` goes on writing, which ends the process or
 * runs statements outside of any transaction (porsager/postgres issues 1208 and 1216); if an answer
 * was cut after its first row, the next one has its rows in the wrong places; a connection that
 * never answers keeps its place for ever. Here a lost connection is known before the next
 * statement, and never comes back.
 */
export function openPool({ connections, shares, connect, onLost }: PoolOptions): Pool {
  const idle: Connection[] = []
  const all = new Set<Connection>()
  /** In order of arrival. Sets, so that a waiter is removed in constant time. */
  const lines: Readonly<Record<Level, Set<Accept>>> = {
    deliveries: new Set(),
    trusted: new Set(),
    strangers: new Set(),
    extras: new Set(),
  }
  let failures = 0
  let notBefore = 0
  let closed = false

  function open(): Connection {
    const client = connect(() => {
      connection.state = 'lost'
    })
    const connection: Connection = { ...client, state: 'new' }
    all.add(connection)
    return connection
  }

  function drop(connection: Connection): void {
    all.delete(connection)
    // First, or somebody who hears of the free place could take it as well.
    if (!closed) nextInLine()?.(open())
    // PostgreSQL rolls back when the connection ends, which it may not know yet.
    onLost(connection.name)
    connection.sql
      .end({ timeout: 0 })
      .catch(() => undefined)
      .finally(connection.cut)
  }

  async function take(level: Level): Promise<Connection> {
    // Nobody would end a connection that is made now.
    if (closed) throw new Unavailable('no connection: the program ends')
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (connection.state !== 'lost') return connection
      drop(connection)
    }
    if (all.size < connections) return open()
    const line = lines[level]
    const { waiting, deadlineMs } = shares[level]
    if (line.size >= waiting) {
      throw new Unavailable(`${waiting} statements wait for a connection already`)
    }
    return new Promise((resolve, reject) => {
      function accept(connection: Connection): void {
        clearTimeout(timer)
        resolve(connection)
      }
      const timer = setTimeout(() => {
        line.delete(accept)
        reject(new Unavailable(`no connection was free in ${deadlineMs} ms`))
      }, deadlineMs)
      line.add(accept)
    })
  }

  /** Takes the most urgent one that has waited longest off its list. */
  function nextInLine(): Accept | undefined {
    for (const level of LEVELS) {
      const [first] = lines[level]
      if (first === undefined) continue
      lines[level].delete(first)
      return first
    }
    return undefined
  }

  function give(connection: Connection): void {
    if (connection.state === 'lost') return drop(connection)
    const next = nextInLine()
    if (next === undefined) idle.push(connection)
    else next(connection)
  }

  /** Notes how an attempt with a connection ended. */
  function note(connection: Connection, wasProven: boolean): void {
    if (connection.state !== 'lost') {
      connection.state = 'proven'
      failures = 0
    } else if (!wasProven) {
      failures = Math.min(failures + 1, 10)
      notBefore = performance.now() + Math.min(MIN_PAUSE_MS * 2 ** failures, MAX_PAUSE_MS)
    }
  }

  return {
    async use(level, work) {
      const connection = await take(level)
      const wasProven = connection.state === 'proven'
      try {
        const early = wasProven || failures === 0 ? 0 : notBefore - performance.now()
        if (early > 0) await sleep(early)
        return await work(connection)
      } finally {
        note(connection, wasProven)
        give(connection)
      }
    },
    get waiting() {
      return LEVELS.reduce((sum, level) => sum + lines[level].size, 0)
    },
    async close() {
      closed = true
      await Promise.all([...all].map(({ sql, cut }) => sql.end(CLOSING).finally(cut)))
    },
  }
}

/** Has the server end connections that were lost. */
interface ConnectionReaper {
  end(name: string): void
  close(): void
}

const RETRY_MS = 500
/**
 * Of more, the newest are kept: while a database is away, each attempt to connect may count as a
 * loss.
 */
const MAX_NAMES = 1_000

/**
 * A silently dropped connection keeps its locks until TCP times out. The time-outs of PostgreSQL
 * end one that waits for its next statement, but none that was lost between the messages of a
 * statement. So the server is asked to end lost connections, by name and on another connection,
 * until that succeeds. A server that refuses would refuse again: `onRefused` is called the first
 * time.
 */
export function createReaper(
  endOnServer: (names: readonly string[]) => Promise<void>,
  onRefused: (error: QueryError) => void,
): ConnectionReaper {
  const lost = new Set<string>()
  const closing = new AbortController()
  let running = false
  let reported = false

  function giveUp(error: QueryError): void {
    lost.clear()
    if (!reported) onRefused(error)
    reported = true
  }

  async function run(): Promise<void> {
    while (lost.size > 0 && !closing.signal.aborted) {
      const names = [...lost]
      try {
        await endOnServer(names)
        for (const name of names) lost.delete(name)
      } catch (error) {
        if (error instanceof QueryError) giveUp(error)
        // The database is away. When it is back, the lost connections may still be there.
        else await pause(RETRY_MS, closing.signal)
      }
    }
    running = false
  }

  return {
    end(name) {
      lost.add(name)
      for (const oldest of lost) {
        if (lost.size <= MAX_NAMES) break
        lost.delete(oldest)
      }
      if (running) return
      running = true
      void run()
    },
    close: () => closing.abort(),
  }
}
