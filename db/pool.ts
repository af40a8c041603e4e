import { setTimeout as pause } from 'node:timers/promises'
import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import type { Share } from './levels.ts'

/** A client of one connection. */
export interface Client {
  /** What the server knows it by. */
  readonly name: string
  readonly sql: postgres.Sql
  /** Ends its socket at once: what was lost on the way would hold it for a quarter of an hour. */
  readonly cut: () => unknown
}

/** A connection that one statement or transaction has for itself. */
export interface Connection extends Client {
  /** True once the connection is gone or in doubt: nothing more may be sent on it. */
  lost: boolean
  /** True once it has worked. */
  proven: boolean
}

/** Connections, each used by one statement or transaction at a time. */
export interface Pool {
  /**
   * Gives `work` a connection; one that is lost by then is thrown away. Rejects with `Unavailable`: at once
   * when too many wait already.
   */
  use<T>(work: (connection: Connection) => Promise<T>): Promise<T>
  /** How many wait for a connection. */
  readonly waiting: number
  close(timeoutSeconds: number): Promise<void>
}

export interface PoolOptions {
  readonly share: Share
  /** Told the name of a connection that was lost, when its place belongs to who has waited for one. */
  readonly onLost: (name: string) => void
}

/** A database that is away, or starts, is asked this often at most, and less often the longer it is away. */
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 500

/**
 * Opens as many clients as its share has connections, of one each, when they are needed. A client of more is no choice, for
 * what it does when a connection dies: in its own `begin()` it goes on to write to it, which ends the whole
 * process, or, on a connection that is back, outside of any transaction (porsager/postgres issues 1208 and
 * 1216); where the answer was cut after its first row, the next answer on the connection that is back has its
 * rows in the wrong places; and a connection that never answers keeps its place for ever. Here a lost
 * connection is known before the next statement, and never comes back.
 */
export function openPool(
  connect: (onClose: () => void) => Client,
  { share, onLost }: PoolOptions,
): Pool {
  const idle: Connection[] = []
  const all = new Set<Connection>()
  /** In order of arrival. A set, so that a waiter is removed in constant time. */
  const waiting = new Set<(connection: Connection) => void>()
  let failures = 0
  let notBefore = 0
  let closed = false

  function open(): Connection {
    const client = connect(() => {
      connection.lost = true
    })
    const connection: Connection = { ...client, lost: false, proven: false }
    all.add(connection)
    return connection
  }

  function drop(connection: Connection): void {
    all.delete(connection)
    // Before anybody hears of the place, who could take it as well.
    if (!closed) nextWaiting()?.(open())
    // What it was doing is over in any case: PostgreSQL rolls back when the connection ends, which it may not know yet.
    onLost(connection.name)
    connection.sql
      .end({ timeout: 0 })
      .catch(() => undefined)
      .finally(connection.cut)
  }

  /** Says how an attempt with a connection ended. */
  function judge(connection: Connection): void {
    if (!connection.lost) {
      connection.proven = true
      failures = 0
    } else if (!connection.proven) {
      failures = Math.min(failures + 1, 10)
      notBefore = performance.now() + Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS)
    }
  }

  async function take(): Promise<Connection> {
    // A connection that is made now would be ended by nobody.
    if (closed) throw new Unavailable('no connection: the program ends')
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (!connection.lost) return connection
      drop(connection)
    }
    if (all.size < share.connections) return open()
    if (waiting.size >= share.waiting) {
      throw new Unavailable(`${share.waiting} statements wait for a connection already`)
    }
    return new Promise((resolve, reject) => {
      function accept(connection: Connection): void {
        clearTimeout(timer)
        resolve(connection)
      }
      const timer = setTimeout(() => {
        waiting.delete(accept)
        reject(new Unavailable(`no connection was free in ${share.deadlineMs} ms`))
      }, share.deadlineMs)
      waiting.add(accept)
    })
  }

  /** Takes the one that has waited longest off the list. */
  function nextWaiting(): ((connection: Connection) => void) | undefined {
    const [first] = waiting
    if (first !== undefined) waiting.delete(first)
    return first
  }

  function give(connection: Connection): void {
    const next = connection.lost ? undefined : nextWaiting()
    if (next !== undefined) return next(connection)
    if (!connection.lost) return void idle.push(connection)
    drop(connection)
  }

  return {
    async use(work) {
      const connection = await take()
      try {
        const early = connection.proven || failures === 0 ? 0 : notBefore - performance.now()
        if (early > 0) await pause(early)
        return await work(connection)
      } finally {
        judge(connection)
        give(connection)
      }
    },
    get waiting() {
      return waiting.size
    },
    async close(timeoutSeconds) {
      closed = true
      await Promise.all(
        [...all].map(({ sql, cut }) => sql.end({ timeout: timeoutSeconds }).finally(cut)),
      )
    },
  }
}
