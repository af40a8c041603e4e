import { setTimeout as pause } from 'node:timers/promises'
import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'

/** A connection that one transaction has for itself. */
export interface Session {
  readonly sql: postgres.Sql
  /** True once the connection is gone or in doubt: nothing more may be sent on it. */
  lost: boolean
}

/** The connections for transactions. */
export interface Sessions {
  /** Gives `work` a session; one that is lost by then is thrown away. Rejects with `Unavailable`. */
  use<T>(work: (session: Session) => Promise<T>): Promise<T>
  close(timeoutSeconds: number): Promise<void>
}

/**
 * Opens up to `most` clients of one connection each, when they are needed. The client's own `begin()`
 * is no choice: when a connection dies in a transaction it goes on to write to it, which ends the whole
 * process, or, on a connection that is back, outside of any transaction (porsager/postgres issues 1208
 * and 1216). Here a lost connection is known before the next statement, and never comes back.
 */
export function openSessions(
  connect: (onClose: () => void) => postgres.Sql,
  most: number,
  deadlineMs: number,
): Sessions {
  const idle: Session[] = []
  const all = new Set<Session>()
  const waiting: ((session: Session) => void)[] = []

  function open(): Session {
    const sql = connect(() => {
      session.lost = true
    })
    const session: Session = { sql, lost: false }
    all.add(session)
    return session
  }

  function drop(session: Session): void {
    all.delete(session)
    // What it was doing is over in any case: PostgreSQL rolls back when the connection ends.
    session.sql.end({ timeout: 0 }).catch(() => undefined)
  }

  async function take(): Promise<Session> {
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
    waiting.shift()?.(open())
  }

  return {
    async use(work) {
      const session = await take()
      try {
        return await work(session)
      } finally {
        give(session)
      }
    },
    async close(timeoutSeconds) {
      await Promise.all([...all].map(({ sql }) => sql.end({ timeout: timeoutSeconds })))
    },
  }
}
