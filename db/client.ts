import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { byteaText, connectTo, type ConnectOptions, type Target } from './connect.ts'
import { isFull, QueryError, translate } from './errors.ts'
import {
  createReaper,
  CLOSING,
  LEVELS,
  Pool,
  perLevel,
  sharesOf,
  type Connection,
  type Level,
  type PoolOptions,
  type Share,
} from './pool.ts'

/** A statement with the name that error messages use. */
export interface Query {
  name: string
  text: string
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
 * The database of one process. Statements and transactions run for the `trusted` level, unless
 * `at` says another one.
 */
export interface Database extends Executor {
  /**
   * Runs statements for a level. Throws `Unavailable` at once when too many of that level wait.
   */
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
  target: Target
  /** Longest wait for one statement, in milliseconds; then it counts as unavailable. */
  deadlineMs: number
  /** For the `trusted` level of a server; `sharesOf` has those of other levels. */
  connections: number
  /** Called once if the server refuses to end lost connections. */
  onNotEnded?: (error: Error) => void
}

/**
 * Named prepared statement in the extended protocol: a second statement in the text is refused.
 */
const PREPARED = { prepare: true, simple: false }

/** Ends connections by their names. Every role may end its own. */
const END: Query = {
  name: 'end lost connections',
  text: `
select pg_terminate_backend(pid)
  from pg_stat_activity
 where application_name = any(string_to_array($1, ',')) and usename = current_user`,
}

/** How long a database that had no space counts as away. */
const FULL_MS = 5_000

/** What statements run with. */
interface Runner {
  shares: Readonly<Record<Level, Share>>
  pools: Readonly<Record<Level, Pool>>
  /** Until then the database counts as away: a statement has found no space. */
  fullUntil: number
}

/** Opens the client; it connects at the first statement and reconnects by itself. */
export function openClient(options: ClientOptions): Database {
  const { target, deadlineMs, connections, onNotEnded = () => undefined } = options
  const shares = sharesOf(connections, deadlineMs)
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
  const runner = { shares, pools, fullUntil: 0 }
  const executors = perLevel((level) => executorAt(runner, level))
  const { trusted } = executors
  const reaper = createReaper((names) => trusted.run(END, [names.join(',')]), onNotEnded)

  return {
    at: (level) => executors[level],
    ...trusted,
    transaction: (work) =>
      pools.trusted.use('trusted', (connection) => transact(runner, connection, work)),
    async ping() {
      if (performance.now() < runner.fullUntil) throw new Unavailable('ping: no space for changes')
      await trusted.run({ name: 'ping', text: 'select 1' }, [])
    },
    describe: ({ name, text }) =>
      alone(runner, 'trusted', (sql) =>
        bounded(runner, name, sql.unsafe(text, [], PREPARED).describe()),
      ),
    async listen(channel, onNotice) {
      const name = `listen ${channel}`
      if (listener !== undefined) {
        const listening = listener.sql.listen(channel, onNotice, () => onNotice())
        return void (await bounded(runner, name, listening))
      }
      channels.set(channel, onNotice)
      await alone(runner, 'trusted', (sql) =>
        bounded(runner, name, sql.unsafe(`listen "${channel}"`)),
      )
      onNotice()
    },
    renewStatistics: () => Promise.resolve(),
    async close() {
      void reaper.close()
      const listenerEnds = listener?.sql.end(CLOSING).finally(listener.cut)
      const closed = [...new Set(Object.values(pools))].map((pool) => pool.close())
      await Promise.all([listenerEnds, ...closed])
    },
  }
}

function executorAt(runner: Runner, level: Level): Executor {
  return {
    async run(query, args) {
      if (level === 'extras' && othersWait(runner)) {
        throw new Unavailable(`${query.name}: others wait`)
      }
      return alone(runner, level, (sql) => runQuery(runner, sql, query, args, level))
    },
  }
}

/** Whether statements wait in other pools. In its own pool, an extra comes last anyway. */
function othersWait({ pools }: Runner) {
  return LEVELS.some((level) => pools[level] !== pools.extras && pools[level].waiting > 0)
}

/** Runs one statement by itself. */
function alone<T>({ pools }: Runner, level: Level, work: (sql: postgres.Sql) => Promise<T>) {
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

/** The pool of each level: on a server its own, on the embedded engine one of one connection. */
function poolsOf(
  target: Target,
  shares: Runner['shares'],
  events: Required<Pick<ConnectOptions, 'onNotify'>> & Pick<PoolOptions, 'onLost'>,
): Runner['pools'] {
  const { onNotify, onLost } = events
  const poolOf = ({ connections, deadlineMs }: Share) =>
    new Pool({
      ...{ connections, shares, onLost },
      connect: (onClose) => connectTo(target, { deadlineMs, onClose, onNotify }),
    })
  if (typeof target === 'string') return perLevel((level) => poolOf(shares[level]))
  const only = poolOf({ ...shares.trusted, connections: 1 })
  return perLevel(() => only)
}

/**
 * Waits for an answer for as long as a statement may take, and translates errors. A stalled server
 * must not hold a request for ever. PostgreSQL ends the statement by its own time-out.
 */
async function bounded<T>(
  runner: Runner,
  name: string,
  pending: PromiseLike<T>,
  level: Level = 'trusted',
): Promise<T> {
  const { deadlineMs } = runner.shares[level]
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Unavailable(`${name}: no answer in ${deadlineMs} ms`))
  }, deadlineMs + 500)
  try {
    return await Promise.race([pending, late.promise])
  } catch (error) {
    if (isFull(error)) runner.fullUntil = performance.now() + FULL_MS
    throw translate(name, error)
  } finally {
    clearTimeout(timer)
  }
}

function runQuery(
  runner: Runner,
  sql: postgres.Sql,
  { name, text }: Query,
  args: readonly unknown[],
  level?: Level,
) {
  // The postgres client holds arguments until V8's next full collection. As buffers they fragment
  // glibc's heap, which never shrinks: 45 MiB after 100,000 deliveries (bench/RESULTS.md).
  const values = args.map((value) => (Buffer.isBuffer(value) ? byteaText(value) : value))
  const given = values as postgres.ParameterOrJSON<never>[]
  return bounded(runner, name, sql.unsafe(text, given, PREPARED), level)
}

/**
 * Runs `work` between begin and commit, or rolls back if it throws or any statement has failed.
 */
async function transact<T>(
  runner: Runner,
  connection: Connection,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { sql } = connection
  let failed: { error: unknown } | undefined
  /**
   * On a connection in doubt, a statement would wait for ever or run outside of the transaction.
   */
  async function guarded<R>(statement: () => Promise<R>) {
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
  const send = (text: string) => guarded(() => bounded(runner, 'transaction', sql.unsafe(text)))
  async function runScript(text: string) {
    const script = sql.unsafe(`set local statement_timeout = 0;\n${text}`)
    await script.catch((error: unknown) => Promise.reject(translate('script', error)))
  }
  try {
    await send('begin')
    const result = await work({
      run: (query, args) => guarded(() => runQuery(runner, sql, query, args)),
      script: (text) => guarded(() => runScript(text)),
    })
    // PostgreSQL answers the commit of a failed transaction with a rollback, which is not an
    // error.
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
