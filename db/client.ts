import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { connectTo, type ConnectOptions, type Target } from './connect.ts'
import { isFull, QueryError, translate } from './errors.ts'
import {
  createReaper,
  CLOSING,
  LEVELS,
  openPool,
  sharesOf,
  type Connection,
  type Level,
  type Pool,
  type PoolOptions,
  type Share,
} from './pool.ts'

/** A statement with the name that error messages use. */
export interface Query {
  readonly name: string
  readonly text: string
}

/** Runs named queries, either each on its own or inside one transaction. */
export interface Executor {
  /** Rows of a query. Throws `Unavailable` or `QueryError`. */
  run(query: Query, args: readonly unknown[]): Promise<readonly unknown[]>
}

/** Statements that are done together or not at all. */
export interface Transaction extends Executor {
  /** Runs a text of one or several statements, without a deadline. */
  script(text: string): Promise<void>
}

/**
 * The database of one process. Statements and transactions run for the `trusted` level, unless `at`
 * says another one.
 */
export interface Database extends Executor {
  /** Runs statements for a level. Throws `Unavailable` at once when too many of that level wait. */
  at(level: Level): Executor
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  /**
   * Resolves when the database answers; for five seconds after it had no space it counts as away.
   */
  ping(): Promise<void>
  /** Type OIDs of a query's arguments and columns, without running it. */
  describe(query: Query): Promise<Pick<postgres.Statement, 'types' | 'columns'>>
  /**
   * Calls back on each NOTIFY with its payload. After each (re)connect it calls back without one,
   * because notifications may have been missed.
   */
  listen(channel: string, onNotice: (payload?: string) => void): Promise<void>
  /** Analyzes tables that changed much, where no autovacuum does it; later if it can't now. */
  renewStatistics(): Promise<void>
  close(): Promise<void>
}

export interface ClientOptions {
  readonly target: Target
  /** Longest wait for one statement, in milliseconds; then it counts as unavailable. */
  readonly deadlineMs: number
  /** For the `trusted` level of a server; `sharesOf` has those of other levels. */
  readonly connections: number
  /** Called once if the server refuses to end lost connections. */
  readonly onNotEnded?: (error: Error) => void
}

/** Named prepared statement in the extended protocol: a second statement in the text is refused. */
const PREPARED = { prepare: true, simple: false }

/** Ends connections by their names. Every role may end its own. */
const END = `
select pg_terminate_backend(pid)
  from pg_stat_activity
 where application_name = any(string_to_array($1, ',')) and usename = current_user`

/** How long a database that had no space counts as away. */
const FULL_MS = 5_000

/** Opens the client; it connects at the first statement and reconnects by itself. */
export function openClient(options: ClientOptions): Database {
  const { target, deadlineMs, connections, onNotEnded = () => undefined } = options
  const shares = sharesOf(connections, deadlineMs)
  const bounded = createBounds(deadlineMs)
  const reaper = createReaper(endOnServer, onNotEnded)
  /** Callbacks of channels on the embedded engine, whose one connection listens, too. */
  const channels = new Map<string, (payload?: string) => void>()
  /** What makes connections for LISTEN on a server. */
  const listener =
    typeof target === 'string'
      ? connectTo(target, { deadlineMs, onClose: () => undefined })
      : undefined

  const pools = poolsOf(target, shares, {
    onNotify: (channel, payload) => channels.get(channel)?.(payload),
    onLost(name) {
      if (listener !== undefined) reaper.end(name)
      // The engine ends a connection by itself. Notifications may have been lost with it.
      for (const onNotice of channels.values()) onNotice()
    },
  })

  async function endOnServer(names: readonly string[]): Promise<void> {
    await alone('trusted', (sql) =>
      bounded('end lost connections', sql.unsafe(END, [names.join(',')], PREPARED)),
    )
  }

  /** Runs one statement by itself. */
  function alone<T>(level: Level, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    return pools[level].use(level, async (connection) => {
      try {
        return await work(connection.sql)
      } catch (error) {
        // Anything but a refusal leaves it in doubt.
        if (!(error instanceof QueryError)) connection.state = 'lost'
        throw error
      }
    })
  }

  function at(level: Level): Executor {
    return {
      async run(query, args) {
        if (level === 'extras' && othersWait()) throw new Unavailable(`${query.name}: others wait`)
        return alone(level, (sql) => runQuery(bounded, sql, query, args, shares[level].deadlineMs))
      },
    }
  }

  /** Whether statements wait in other pools. In its own pool, an extra comes last anyway. */
  function othersWait(): boolean {
    return LEVELS.some((level) => pools[level] !== pools.extras && pools[level].waiting > 0)
  }

  return {
    at,
    ...at('trusted'),
    transaction: (work) =>
      pools.trusted.use('trusted', (connection) => transact(bounded, connection, work)),
    async ping() {
      if (bounded.isFull()) throw new Unavailable('ping: no space for changes')
      await alone('trusted', (sql) => bounded('ping', sql.unsafe('select 1', [], PREPARED)))
    },
    describe: ({ name, text }) =>
      alone('trusted', (sql) => bounded(name, sql.unsafe(text, [], PREPARED).describe())),
    async listen(channel, onNotice) {
      const name = `listen ${channel}`
      if (listener !== undefined) {
        await bounded(
          name,
          listener.sql.listen(channel, onNotice, () => onNotice()),
        )
        return
      }
      channels.set(channel, onNotice)
      await alone('trusted', (sql) => bounded(name, sql.unsafe(`listen "${channel}"`)))
      onNotice()
    },
    renewStatistics: () => Promise.resolve(),
    async close() {
      reaper.close()
      const listenerEnds = listener?.sql.end(CLOSING).finally(listener.cut)
      const all = new Set(LEVELS.map((level) => pools[level]))
      await Promise.all([listenerEnds, ...[...all].map((pool) => pool.close())])
    },
  }
}

/** The pool of each level: on a server its own, on the embedded engine one of one connection. */
function poolsOf(
  target: Target,
  shares: Readonly<Record<Level, Share>>,
  events: Required<Pick<ConnectOptions, 'onNotify'>> & Pick<PoolOptions, 'onLost'>,
): Readonly<Record<Level, Pool>> {
  const { onNotify, onLost } = events
  const poolOf = (level: Level, connections: number): Pool => {
    const { deadlineMs } = shares[level]
    const connect: PoolOptions['connect'] = (onClose) =>
      connectTo(target, { deadlineMs, onClose, onNotify })
    return openPool({ connections, shares, connect, onLost })
  }
  if (typeof target !== 'string') {
    const only = poolOf('trusted', 1)
    return { deliveries: only, trusted: only, strangers: only, extras: only }
  }
  return {
    deliveries: poolOf('deliveries', shares.deliveries.connections),
    trusted: poolOf('trusted', shares.trusted.connections),
    strangers: poolOf('strangers', shares.strangers.connections),
    extras: poolOf('extras', shares.extras.connections),
  }
}

/** Waits for an answer for as long as a statement may take, and translates errors. */
interface Bounded {
  <T>(name: string, pending: PromiseLike<T>, limitMs?: number): Promise<T>
  /** Whether a statement found no space in the last seconds. */
  isFull(): boolean
}

/**
 * A stalled server must not hold a request for ever. PostgreSQL ends the statement by its own
 * time-out.
 */
function createBounds(deadlineMs: number): Bounded {
  let fullUntil = 0
  async function bounded<T>(
    name: string,
    pending: PromiseLike<T>,
    limitMs = deadlineMs,
  ): Promise<T> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Unavailable(`${name}: no answer in ${limitMs} ms`)),
        limitMs + 500,
      )
    })
    try {
      return await Promise.race([pending, late])
    } catch (error) {
      if (isFull(error)) fullUntil = performance.now() + FULL_MS
      throw translate(name, error)
    } finally {
      clearTimeout(timer)
    }
  }
  return Object.assign(bounded, { isFull: () => performance.now() < fullUntil })
}

function runQuery(
  bounded: Bounded,
  sql: postgres.Sql,
  { name, text }: Query,
  args: readonly unknown[],
  limitMs?: number,
): Promise<readonly unknown[]> {
  const values = args as postgres.ParameterOrJSON<never>[]
  return bounded(name, sql.unsafe(text, values, PREPARED), limitMs)
}

/** Runs `work` between begin and commit, or rolls back if it throws or any statement has failed. */
async function transact<T>(
  bounded: Bounded,
  connection: Connection,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { sql } = connection
  let failed: { readonly error: unknown } | undefined
  /**
   * On a connection in doubt, a statement would wait for ever or run outside of the transaction.
   */
  async function guarded<R>(statement: () => Promise<R>): Promise<R> {
    if (connection.state === 'lost') {
      throw new Unavailable('transaction: the connection is gone')
    }
    try {
      return await statement()
    } catch (error) {
      if (error instanceof Unavailable) connection.state = 'lost'
      failed ??= { error }
      throw error
    }
  }
  const send = (text: string): Promise<unknown> =>
    guarded(() => bounded('transaction', sql.unsafe(text)))
  async function runScript(text: string): Promise<void> {
    try {
      await sql.unsafe(`set local statement_timeout = 0;\n${text}`)
    } catch (error) {
      throw translate('script', error)
    }
  }
  try {
    await send('begin')
    const result = await work({
      run: (query, args) => guarded(() => runQuery(bounded, sql, query, args)),
      script: (text) => guarded(() => runScript(text)),
    })
    // PostgreSQL answers the commit of a failed transaction with a rollback, which is not an error.
    if (failed !== undefined) throw failed.error
    await send('commit')
    return result
  } catch (error) {
    await send('rollback').catch(() => {
      connection.state = 'lost'
    })
    throw error
  }
}
