import type postgres from 'postgres'
import { Unavailable } from '../kernel/fault.ts'
import { createMetrics, type Metrics } from '../kernel/metrics.ts'
import { connectTo, type ConnectOptions, type Engine, type Target } from './connect.ts'
import { translate } from './errors.ts'
import { LEVELS, perLevel, sharesOf, type Level, type Share, type Shares } from './levels.ts'
import { createClientMetrics } from './metrics.ts'
import { parseServers } from './servers.ts'
import { createReaper, CLOSING, Pool, type Connection, type PoolOptions } from './pool.ts'
import { answerTo, noteFailure, withDeadline, type Runner } from './answers.ts'

/** A statement with the name that error messages use. */
export interface Query {
  name: string
  text: string
  /** Planned for the values of each call; without it, once for all values. */
  plan?: 'each' | undefined
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
  /** Connection URL of one server or several, or the embedded engine. */
  target: string | Engine
  /** Longest wait for one statement, in milliseconds; then it counts as unavailable. */
  deadlineMs: number
  /** The same for vacuuming and analyzing; by default a minute. */
  upkeepDeadlineMs?: number | undefined
  /** For the `trusted` level of a server; `sharesOf` has those of other levels. */
  connections: number
  /** Without it, nothing is measured. */
  metrics?: Metrics | undefined
  /** Called once if the server refuses to end lost connections. */
  onNotEnded?: (error: Error) => void
  /** Called when a statement of the embedded engine has not ended by its deadline. */
  onLate?: (name: string) => void
  /** Called when it has ended at last, with its whole time. */
  onLateEnd?: (name: string, ms: number) => void
}

/**
 * Named prepared statement in the extended protocol: a second statement in the text is refused.
 */
const PREPARED = { prepare: true, simple: false }

/**
 * Ends connections by their names. Every role may end its own. One that waits for a synchronous
 * standby has committed: to end it would show others what the standby may never get.
 */
const END: Query = {
  name: 'end lost connections',
  text: `
select pg_terminate_backend(pid)
  from pg_stat_activity
 where application_name = any(string_to_array($1, ',')) and usename = current_user
   and wait_event is distinct from 'SyncRep'`,
}

/** What the client runs statements with. */
interface Client extends Runner {
  pools: Readonly<Record<Level, Pool>>
}

/** Opens the client; it connects at the first statement and reconnects by itself. */
export function openClient(options: ClientOptions): Database {
  const { deadlineMs, upkeepDeadlineMs, connections } = options
  const target: Target =
    typeof options.target === 'string' ? parseServers(options.target) : options.target
  const servers = 'url' in target ? target : undefined
  const shares = sharesOf(connections, deadlineMs, upkeepDeadlineMs)
  const metrics = createClientMetrics(options.metrics ?? createMetrics(), (level) =>
    pools[level].waiting(level),
  )
  /** Callbacks of channels on the embedded engine, whose one connection listens, too. */
  const channels = new Map<string, (payload?: string) => void>()
  /** What makes connections for LISTEN on a server. */
  const listener =
    servers && connectTo(servers, { deadlineMs, onClose: nothing, onReopen: metrics.reconnects })

  const pools = poolsOf(target, shares, {
    onNotify: (channel, payload) => channels.get(channel)?.(payload),
    onLost(name) {
      metrics.reconnects()
      if (listener !== undefined) reaper.end(name)
      // The engine ends a connection by itself. Notifications may have been lost with it.
      for (const onNotice of channels.values()) onNotice()
    },
    onRefused: (level) => metrics.refused[level](),
  })
  const client: Client = {
    backend: servers === undefined ? 'embedded' : 'postgresql',
    shares,
    metrics,
    pools,
    fullUntil: 0,
    cancel: 'cancel' in target ? target.cancel : nothing,
    onLate: options.onLate ?? nothing,
    onLateEnd: options.onLateEnd ?? nothing,
  }
  const executors = perLevel((level) => executorAt(client, level))
  const { trusted } = executors
  const reaper = createReaper(
    (names) => trusted.run(END, [names.join(',')]),
    options.onNotEnded ?? nothing,
  )

  return {
    at: (level) => executors[level],
    ...trusted,
    transaction: (work) =>
      pools.trusted.use('trusted', (connection) => transact(client, connection, work)),
    async ping() {
      if (performance.now() < client.fullUntil) throw new Unavailable('ping: no space for changes')
      await trusted.run({ name: 'ping', text: 'select 1' }, [])
    },
    describe: ({ name, text }) =>
      pools.trusted.use('trusted', (connection) => {
        const described = connection.sql.unsafe(text, [], PREPARED).describe()
        return answerTo(client, connection, name, described)
      }),
    async listen(channel, onNotice) {
      if (listener !== undefined) return listenOnServer(client, listener, channel, onNotice)
      channels.set(channel, onNotice)
      await pools.trusted.use('trusted', (connection) =>
        answerTo(
          client,
          connection,
          `listen ${channel}`,
          connection.sql.unsafe(`listen "${channel}"`),
        ),
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

function nothing() {}

/** postgres.js opens a dedicated connection for LISTEN, and opens it again when it is lost. */
async function listenOnServer(
  client: Client,
  { sql }: Pick<Connection, 'sql'>,
  channel: string,
  onNotice: (payload?: string) => void,
) {
  try {
    await withDeadline(
      client,
      sql.listen(channel, onNotice, () => onNotice()),
    )
  } catch (error) {
    throw translate(`listen ${channel}`, error)
  }
}

function executorAt(client: Client, level: Level): Executor {
  return {
    async run(query, args) {
      if (level === 'extras' && othersWait(client)) {
        client.metrics.refused.extras()
        throw new Unavailable(`${query.name}: others wait`)
      }
      return client.pools[level].use(level, (connection) =>
        runQuery(client, connection, query, args, level),
      )
    },
  }
}

/** Whether statements wait in other pools. In its own pool, an extra comes last anyway. */
function othersWait({ pools }: Client) {
  return LEVELS.some((level) => pools[level] !== pools.extras && pools[level].waiting(level) > 0)
}

/** The pool of each level: on a server its own, on the embedded engine one of one connection. */
function poolsOf(
  target: Target,
  shares: Shares,
  {
    onNotify,
    ...events
  }: Required<Pick<ConnectOptions, 'onNotify'>> & Pick<PoolOptions, 'onLost' | 'onRefused'>,
): Client['pools'] {
  const poolOf = ({ connections, deadlineMs }: Share) =>
    new Pool({
      connections,
      shares,
      ...events,
      recover: (connection) => connection.sql.unsafe('rollback'),
      connect: (onClose) => connectTo(target, { deadlineMs, onClose, onNotify }),
    })
  if ('url' in target) return perLevel((level) => poolOf(shares[level]))
  const only = poolOf({ ...shares.trusted, connections: 1 })
  return perLevel(() => only)
}

async function runQuery(
  client: Client,
  connection: Connection,
  { name, text, plan }: Query,
  args: readonly unknown[],
  level?: Level,
): Promise<readonly unknown[]> {
  const values = [...args]
  const given = values as postgres.ParameterOrJSON<never>[]
  const how = { ...PREPARED, prepare: plan !== 'each' }
  const statement = connection.sql.unsafe(text, given, how)
  const rows = await answerTo(client, connection, name, statement, level)
  return emptied(statement, values, rows)
}

/** What the client library keeps of a statement: the values as they were sent. */
interface Sent {
  parameters: unknown[]
}

/**
 * Takes values and rows from an answered statement; gives the rows. The statement itself stays in
 * memory until V8's next full collection, and would keep them (docs/decisions/083-garbage.md).
 */
function emptied(statement: object, values: unknown[], rows: unknown[]): readonly unknown[] {
  const { parameters } = statement as Sent
  values.length = 0
  parameters.length = 0
  return rows.splice(0)
}

/**
 * Runs `work` between begin and commit, or rolls back if it throws or any statement has failed.
 */
async function transact<T>(
  client: Client,
  connection: Connection,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { sql } = connection
  let failure: { error: unknown } | undefined
  /**
   * On a connection in doubt, a statement would wait for ever or run outside of the transaction.
   */
  async function guarded<R>(statement: () => Promise<R>) {
    if (failure?.error instanceof Unavailable) throw failure.error
    if (!takesStatements(connection)) {
      throw new Unavailable('transaction: the connection is gone')
    }
    try {
      return await statement()
    } catch (error) {
      failure ??= { error }
      throw error
    }
  }
  const send = (text: string) => answerTo(client, connection, 'transaction', sql.unsafe(text))
  async function runScript(text: string) {
    const script = sql.unsafe(`set local statement_timeout = 0;\n${text}`)
    await script.catch((error: unknown) => {
      throw noteFailure(client, connection, 'script', error)
    })
  }
  try {
    await guarded(() => send('begin'))
    const result = await work({
      run: (query, args) => guarded(() => runQuery(client, connection, query, args)),
      script: (text) => guarded(() => runScript(text)),
    })
    // PostgreSQL answers the commit of a failed transaction with a rollback, which is not an
    // error.
    if (failure !== undefined) throw failure.error
    await guarded(() => send('commit'))
    return result
  } catch (error) {
    await rollBack(connection, send)
    throw error
  }
}

/** A late connection is rolled back when it has answered, and a lost one by its end. */
async function rollBack(connection: Connection, send: (text: string) => Promise<unknown>) {
  if (!takesStatements(connection)) return
  try {
    await send('rollback')
  } catch {
    // Whether the transaction is over is not known.
    if (takesStatements(connection)) connection.state = 'lost'
  }
}

function takesStatements({ state }: Connection) {
  return state === 'new' || state === 'proven'
}
