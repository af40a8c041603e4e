import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { connector, type Target } from './connect.ts'
import { isFull, QueryError, translate } from './errors.ts'
import { LEVELS, sharesOf, type Level } from './levels.ts'
import { createEnder, type Ender } from './lost-connections.ts'
import type { Query } from './queries.ts'
import { openPool, type Connection, type Pool } from './pool.ts'

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

/** The database of one process. Statements and transactions run for the `trusted` level, unless `at` says another one. */
export interface Database extends Executor {
  /** Runs statements for a level. Throws `Unavailable` at once when too many of that level wait. */
  at(level: Level): Executor
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  /** Resolves when the database answers; for five seconds after it had no space it counts as away. */
  ping(): Promise<void>
  /** Column names and type OIDs of a query without running it. */
  describe(
    query: Query,
  ): Promise<{ readonly args: readonly number[]; readonly columns: readonly Column[] }>
  /**
   * Calls back on each NOTIFY with its payload and, since any may have been missed, after each
   * (re)connect, then without one.
   */
  listen(channel: string, onNotice: (payload?: string) => void): Promise<void>
  /** Has the planner look at tables that have changed much, where no autovacuum does it; later if it can't now. */
  renewStatistics(): Promise<void>
  close(): Promise<void>
}

export interface Column {
  readonly name: string
  readonly type: number
}

export interface ClientOptions {
  readonly target: Target
  /** Longest wait for one statement, in milliseconds; then it counts as unavailable. */
  readonly deadlineMs: number
  /** For statements of the `trusted` level, and as many for transactions; `sharesOf` has those of other levels. */
  readonly connections: number
  /** Told when the server refuses to end connections that were lost on the way, the first time. */
  readonly onNotEnded?: (error: Error) => void
}

/** Named prepared statement in the extended protocol: a second statement in the text is refused. */
const PREPARED = { prepare: true, simple: false }

/** Ends connections by their names; anybody may end those of the own role. */
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
  const connect = connector(target, shares)
  // The embedded engine sees by itself who has left.
  const ender: Ender | undefined =
    typeof target === 'string' ? createEnder(endOnServer, onNotEnded) : undefined
  const onLost = (name: string): void => ender?.end(name)
  function poolOf(level: Level): Pool {
    return openPool((onClose) => connect(level, onClose), { share: shares[level], onLost })
  }
  const statements: Readonly<Record<Level, Pool>> = {
    deliveries: poolOf('deliveries'),
    trusted: poolOf('trusted'),
    strangers: poolOf('strangers'),
    extras: poolOf('extras'),
  }
  const transactions = poolOf('trusted')
  /** Makes connections for LISTEN and needs none for itself. */
  const ears = connect('trusted', () => undefined)
  let fullUntil = 0

  function executor(handle: Pick<postgres.Sql, 'unsafe'>, limitMs = deadlineMs): Transaction {
    return {
      run: (query, args) =>
        bounded(
          query.name,
          handle.unsafe(query.text, args as postgres.ParameterOrJSON<never>[], PREPARED),
          limitMs,
        ),
      async script(text) {
        try {
          await handle.unsafe(`set local statement_timeout = 0;\n${text}`)
        } catch (error) {
          throw translate('script', error)
        }
      },
    }
  }

  /** A stalled server must not hold a request for ever; the statement itself is ended by its own time-out. */
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

  async function endOnServer(names: readonly string[]): Promise<void> {
    await alone('trusted', (sql) =>
      bounded('end lost connections', sql.unsafe(END, [names.join(',')], PREPARED)),
    )
  }

  /** Runs one statement by itself. */
  function alone<T>(level: Level, work: (sql: postgres.Sql) => Promise<T>): Promise<T> {
    return statements[level].use(async (connection) => {
      try {
        return await work(connection.sql)
      } catch (error) {
        // Anything but a refusal leaves it in doubt.
        if (!(error instanceof QueryError)) connection.lost = true
        throw error
      }
    })
  }

  function at(level: Level): Executor {
    return {
      async run(query, args) {
        if (level === 'extras' && othersWait()) throw new Unavailable(`${query.name}: others wait`)
        return alone(level, (sql) => executor(sql, shares[level].deadlineMs).run(query, args))
      },
    }
  }

  function othersWait(): boolean {
    const { deliveries, trusted, strangers } = statements
    return [deliveries, trusted, strangers, transactions].some(({ waiting }) => waiting > 0)
  }

  async function transact<T>(
    connection: Connection,
    work: (tx: Transaction) => Promise<T>,
  ): Promise<T> {
    const inner = executor(connection.sql)
    let failed: { readonly error: unknown } | undefined
    /** A statement on a connection in doubt would wait for ever, or run outside of the transaction. */
    async function guarded<R>(statement: () => Promise<R>): Promise<R> {
      if (connection.lost) throw new Unavailable('transaction: the connection is gone')
      try {
        return await statement()
      } catch (error) {
        if (error instanceof Unavailable) connection.lost = true
        failed ??= { error }
        throw error
      }
    }
    const say = (text: string): Promise<unknown> =>
      guarded(() => bounded('transaction', connection.sql.unsafe(text)))
    try {
      await say('begin')
      const result = await work({
        run: (query, args) => guarded(() => inner.run(query, args)),
        script: (text) => guarded(() => inner.script(text)),
      })
      // PostgreSQL would take the commit of a failed transaction for a rollback, without a word.
      if (failed !== undefined) throw failed.error
      await say('commit')
      return result
    } catch (error) {
      if (!connection.lost) await say('rollback').catch(() => (connection.lost = true))
      throw error
    }
  }

  return {
    at,
    ...at('trusted'),
    transaction: (work) => transactions.use((connection) => transact(connection, work)),
    async ping() {
      if (performance.now() < fullUntil) throw new Unavailable('ping: no space for changes')
      await alone('trusted', (sql) => bounded('ping', sql.unsafe('select 1', [], PREPARED)))
    },
    async describe(query) {
      const result = await alone('trusted', (sql) =>
        bounded(query.name, sql.unsafe(query.text, [], PREPARED).describe()),
      )
      return {
        args: result.types,
        columns: result.columns.map((column) => ({ name: column.name, type: column.type })),
      }
    },
    async listen(channel, onNotice) {
      await bounded(
        `listen ${channel}`,
        ears.sql.listen(channel, onNotice, () => onNotice()),
      )
    },
    renewStatistics: () => Promise.resolve(),
    async close() {
      ender?.close()
      const deaf = ears.sql.end({ timeout: 3 }).finally(ears.cut)
      const pools = [...LEVELS.map((level) => statements[level]), transactions]
      await Promise.all([deaf, ...pools.map((pool) => pool.close(3))])
    },
  }
}
