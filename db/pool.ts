import { setTimeout as sleep } from 'node:timers/promises'
import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { repeat } from '../kernel/repeat.ts'
import { systemClock } from '../kernel/time.ts'
import { QueryError, stateAfter } from './errors.ts'
import { LEVELS, perLevel, type Level, type Shares } from './levels.ts'

/** A client of one connection. */
export interface Client {
  /** The server's name of it. */
  name: string
  sql: postgres.Sql
  /** Destroys its socket at once: TCP would keep a lost connection for a quarter of an hour. */
  cut: () => unknown
}

/** A connection that one statement or transaction has for itself. */
export interface Connection extends Client {
  /**
   * `late`: an answer is still to come, and nothing may be sent before. `lost`: it is closed or in
   * doubt, so nothing more may be sent on it.
   */
  state: 'new' | 'proven' | 'late' | 'lost'
}

export interface PoolOptions {
  connections: number
  shares: Shares
  connect: (onClose: () => void) => Client
  /** Resolves when a late connection has answered, and its transaction is rolled back. */
  recover: (connection: Connection) => Promise<unknown>
  /** Called with the name of a lost connection, after its place is given to the next in line. */
  onLost: (name: string) => void
  /** Called for each statement or transaction that gets no connection. */
  onRefused: (level: Level) => void
}

type Accept = (connection: Connection) => void

/**
 * How many statements or transactions of more urgent levels run before one that waits. Without
 * this bound three clients that write all the time keep others waiting until they get 503.
 */
const MAX_PASSED = 4

/** How many seconds running statements have when the program ends. */
export const CLOSING = { timeout: 3 }

/**
 * While a database is away or starting, connection attempts are this far apart, and further the
 * longer it takes.
 */
const MIN_PAUSE_MS = 25
const MAX_PAUSE_MS = 500

/**
 * Connections, each used by one statement or transaction at a time. They are clients of one
 * connection each, opened as they are needed. A `postgres` client of several connections
 * mishandles one that dies: its `begin()` goes on writing, which ends the process or runs
 * statements outside of any transaction (porsager/postgres issues 1208 and 1216); if an answer was
 * cut after its first row, the next one has its rows in the wrong places; a connection that never
 * answers keeps its place for ever. Here a lost connection is known before the next statement, and
 * never comes back.
 */
export class Pool {
  #options
  #idle: Connection[] = []
  #all = new Set<Connection>()
  /** In order of arrival. Sets, so that a waiter is removed in constant time. */
  #lines = perLevel(() => new Set<Accept>())
  /** How often a level that waits was passed over. */
  #passed: Record<Level, number> = { ...perLevel(() => 0) }
  #failures = 0
  #notBefore = 0
  #closed = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  /**
   * Gives `work` a connection; one that is lost by then is thrown away. Rejects with
   * `Unavailable`: at once when too many of the level wait already.
   */
  async use<T>(level: Level, work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.#take(level)
    const wasProven = connection.state === 'proven'
    try {
      const early = wasProven || this.#failures === 0 ? 0 : this.#notBefore - performance.now()
      if (early > 0) await sleep(early)
      return await work(connection)
    } finally {
      this.#note(connection, wasProven)
      this.#give(connection)
    }
  }

  /** How many of a level wait for a connection. */
  waiting(level: Level) {
    return this.#lines[level].size
  }

  async close() {
    this.#closed = true
    await Promise.all([...this.#all].map(({ sql, cut }) => sql.end(CLOSING).finally(cut)))
  }

  async #take(level: Level): Promise<Connection> {
    // Nobody would end a connection that is made now.
    if (this.#closed) throw new Unavailable('no connection: the program ends')
    for (;;) {
      const connection = this.#idle.pop()
      if (connection === undefined) break
      if (connection.state !== 'lost') return connection
      this.#drop(connection)
    }
    return this.#all.size < this.#options.connections ? this.#open() : this.#wait(level)
  }

  #open() {
    const client = this.#options.connect(() => {
      connection.state = 'lost'
    })
    const connection: Connection = { ...client, state: 'new' }
    this.#all.add(connection)
    return connection
  }

  #wait(level: Level): Promise<Connection> {
    const line = this.#lines[level]
    const { waiting, waitMs } = this.#options.shares[level]
    if (line.size >= waiting) {
      this.#options.onRefused(level)
      throw new Unavailable(`${waiting} statements wait for a connection already`)
    }
    return new Promise((resolve, reject) => {
      function accept(connection: Connection) {
        clearTimeout(timer)
        resolve(connection)
      }
      const timer = setTimeout(() => {
        line.delete(accept)
        this.#options.onRefused(level)
        reject(new Unavailable(`no connection was free in ${waitMs} ms`))
      }, waitMs)
      line.add(accept)
    })
  }

  /** Takes the one that has waited longest off the list of the level whose turn it is. */
  #nextInLine() {
    const levels = LEVELS.filter((level) => this.#lines[level].size > 0)
    const [mostUrgent] = levels
    if (mostUrgent === undefined) return undefined
    // Answers can do without extras.
    const isDue = (level: Level) => level !== 'extras' && this.#passed[level] >= MAX_PASSED
    const level = levels.find(isDue) ?? mostUrgent
    for (const other of levels) this.#passed[other]++
    this.#passed[level] = 0
    const [first] = this.#lines[level]
    if (first !== undefined) this.#lines[level].delete(first)
    return first
  }

  /** Notes how an attempt with a connection ended. */
  #note(connection: Connection, wasProven: boolean) {
    if (connection.state === 'late') return
    if (connection.state !== 'lost') {
      connection.state = 'proven'
      this.#failures = 0
    } else if (!wasProven) {
      this.#failures = Math.min(this.#failures + 1, 10)
      const pauseMs = Math.min(MIN_PAUSE_MS * 2 ** this.#failures, MAX_PAUSE_MS)
      this.#notBefore = performance.now() + pauseMs
    }
  }

  #give(connection: Connection) {
    if (connection.state === 'lost') return this.#drop(connection)
    if (connection.state === 'late') return void this.#recover(connection)
    const next = this.#nextInLine()
    if (next === undefined) this.#idle.push(connection)
    else next(connection)
  }

  async #recover(connection: Connection) {
    try {
      await this.#options.recover(connection)
      if (connection.state === 'late') connection.state = 'proven'
    } catch {
      connection.state = 'lost'
    }
    this.#give(connection)
  }

  #drop(connection: Connection) {
    this.#all.delete(connection)
    // First, or somebody who hears of the free place could take it as well.
    if (!this.#closed) this.#nextInLine()?.(this.#open())
    // PostgreSQL rolls back when the connection ends, which it may not know yet.
    this.#options.onLost(connection.name)
    connection.sql
      .end({ timeout: 0 })
      .catch(() => undefined)
      .finally(connection.cut)
  }
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
  endOnServer: (names: readonly string[]) => Promise<unknown>,
  onRefused: (error: QueryError) => void,
) {
  const lost = new Set<string>()
  let reported = false

  async function endAll() {
    const names = [...lost]
    if (names.length === 0) return
    try {
      await endOnServer(names)
      for (const name of names) lost.delete(name)
    } catch (error) {
      const isRefused =
        error instanceof QueryError && stateAfter(error.cause, 'postgresql') === 'kept'
      // The database is away or has refused the login. Later, the lost connections may still be
      // there.
      if (!isRefused) return
      lost.clear()
      if (!reported) onRefused(error)
      reported = true
    }
  }

  const runs = repeat(systemClock, RETRY_MS, 'end of connections', endAll)
  return {
    end(name: string) {
      lost.add(name)
      for (const oldest of lost) {
        if (lost.size <= MAX_NAMES) break
        lost.delete(oldest)
      }
      void runs.now()
    },
    close: runs.stop,
  }
}
