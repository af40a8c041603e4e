import { setTimeout as pause } from 'node:timers/promises'
import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'

/** A client of one connection. */
export interface Connection {
  /** What the server knows it by. */
  readonly name: string
  readonly sql: postgres.Sql
  /** Ends its socket at once: what was lost on the way would hold it for a quarter of an hour. */
  readonly cut: () => unknown
}

/** A connection that one statement or transaction has for itself. */
export interface Session extends Connection {
  /** True once the connection is gone or in doubt: nothing more may be sent on it. */
  lost: boolean
  /** True once it has worked. */
  proven: boolean
}

/** Connections, each used by one statement or transaction at a time. */
export interface Sessions {
  /** Gives `work` a session; one that is lost by then is thrown away. Rejects with `Unavailable`. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T>
  close(timeoutSeconds: number): Promise<void>
}

export interface SessionOptions {
  readonly most: number
  /** Longest wait for a free one, in milliseconds. */
  readonly deadlineMs: number
  /** Told the name of a connection that was lost while it was used. */
  readonly onLost: (name: string) => void
}

/** A database that is away, or starts, is asked this often at most, and less often the longer it is away. */
const FIRST_PAUSE_MS = 25
const LONGEST_PAUSE_MS = 500

/**
 * Opens up to `most` clients of one connection each, when they are needed. A client of more is no choice, for
 * what it does when a connection dies: in its own `begin()` it goes on to write to it, which ends the whole
 * process, or, on a connection that is back, outside of any transaction (porsager/postgres issues 1208 and
 * 1216); where the answer was cut after its first row, the next answer on the connection that is back has its
 * rows in the wrong places; and a connection that never answers keeps its place for ever. Here a lost
 * connection is known before the next statement, and never comes back.
 */
export function openSessions(
  connect: (onClose: () => void) => Connection,
  { most, deadlineMs, onLost }: SessionOptions,
): Sessions {
  const idle: Session[] = []
  const all = new Set<Session>()
  const waiting: ((session: Session) => void)[] = []
  let failures = 0
  let notBefore = 0
  let closed = false

  function open(): Session {
    const connection = connect(() => {
      session.lost = true
    })
    const session: Session = { ...connection, lost: false, proven: false }
    all.add(session)
    return session
  }

  function drop(session: Session): void {
    all.delete(session)
    // What it was doing is over in any case: PostgreSQL rolls back when the connection ends, which it may not know yet.
    onLost(session.name)
    session.sql
      .end({ timeout: 0 })
      .catch(() => undefined)
      .finally(session.cut)
  }

  /** Says how an attempt with a session ended. */
  function judge(session: Session): void {
    if (!session.lost) {
      session.proven = true
      failures = 0
    } else if (!session.proven) {
      failures = Math.min(failures + 1, 10)
      notBefore = performance.now() + Math.min(FIRST_PAUSE_MS * 2 ** failures, LONGEST_PAUSE_MS)
    }
  }

  async function take(): Promise<Session> {
    // A connection that is made now would be ended by nobody.
    if (closed) throw new Unavailable('no connection: the program ends')
    for (let session = idle.pop(); session !== undefined; session = idle.pop()) {
      if (!session.lost) return session
      drop(session)
    }
    if (all.size < most) return open()
    const turn = Promise.withResolvers<Session>()
    waiting.push(turn.resolve)
    const patience = new AbortController()
    const late = pause(deadlineMs, undefined, { signal: patience.signal }).then(() => {
      const at = waiting.indexOf(turn.resolve)
      if (at >= 0) waiting.splice(at, 1)
      throw new Unavailable(`transaction: no connection was free in ${deadlineMs} ms`)
    })
    // It rejects when it is aborted, which is nobody's concern by then.
    late.catch(() => undefined)
    return Promise.race([turn.promise, late]).finally(() => patience.abort())
  }

  function give(session: Session): void {
    const next = session.lost ? undefined : waiting.shift()
    if (next !== undefined) return next(session)
    if (!session.lost) return void idle.push(session)
    drop(session)
    if (!closed) waiting.shift()?.(open())
  }

  return {
    async use(work) {
      const session = await take()
      try {
        const early = session.proven || failures === 0 ? 0 : notBefore - performance.now()
        if (early > 0) await pause(early)
        return await work(session)
      } finally {
        judge(session)
        give(session)
      }
    },
    async close(timeoutSeconds) {
      closed = true
      await Promise.all(
        [...all].map(({ sql, cut }) => sql.end({ timeout: timeoutSeconds }).finally(cut)),
      )
    },
  }
}
