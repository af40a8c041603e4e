import { setTimeout as sleep } from 'node:timers/promises'
import * as Type from '../kernel/schema.ts'
import { Unavailable } from '../kernel/fault.ts'
import { messageOf } from '../kernel/log.ts'
import type { Database, Executor } from './client.ts'
import { describeError, QueryError } from './errors.ts'
import { Timestamp, allQueries, one, sqlFile } from './sql-file.ts'

const Facts = Type.Object({
  version: Type.String(),
  version_number: Type.Integer(),
  read_only: Type.Boolean(),
  encrypted: Type.Boolean(),
  encoding: Type.String(),
  /** Whether the database has the extension pg_trgm, or may get it from the migrations. */
  trigrams: Type.Enum(['there', 'may be created', 'forbidden', 'not installed']),
})
/** Version and settings of a server; `version_number` is 150003 for 15.3. */
export type ServerFacts = Type.Static<typeof Facts>

/** PostgreSQL 15. */
const MIN_VERSION = 150_000

export const serverQueries = sqlFile('sql/server.sql', {
  readServerFacts: one(Facts, {}),
  readSession: one(Type.Object({ connection: Type.String(), process: Type.Integer() }), {}),
  readClock: one(Type.Object({ at: Timestamp }), {}),
})

/** Why this program can't use a database, in one line; undefined if it can. */
export function unfitness(facts: ServerFacts): string | undefined {
  const { version, version_number, encoding, trigrams } = facts
  if (version_number < MIN_VERSION) {
    return `the server is PostgreSQL ${version}; 15 or newer is needed: upgrade it`
  }
  // It would convert texts or bytes.
  if (encoding !== 'UTF8') return `the database has the encoding ${encoding}; make one with UTF8`
  if (trigrams === 'not installed') {
    return 'the server lacks the extension pg_trgm: install the contrib modules of PostgreSQL'
  }
  if (trigrams !== 'forbidden') return undefined
  return 'the role may not create the extension pg_trgm: grant it CREATE on the database'
}

/**
 * What a server says of itself. Throws an Error with one line if it, the database, or a pooler in
 * front of it can't be used.
 */
export async function refuseUnfitServer(db: Database): Promise<ServerFacts> {
  const facts = await readFacts(db)
  const reason = unfitness(facts) ?? (await poolerFault(db))
  if (reason !== undefined) throw new Error(reason)
  return facts
}

/**
 * What a server says of itself. An error says in the operator's words that it can't be reached, or
 * lets nobody in.
 */
export async function readFacts(db: Database): Promise<ServerFacts> {
  try {
    return await serverQueries.readServerFacts(db, {})
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error
    const why = describeError(cause)
    if (error instanceof Unavailable) {
      const ways = 'start it, or correct DATABASE_URL'
      throw new Unavailable(`the database can't be reached (${why}): ${ways}`, { cause })
    }
    if (!(error instanceof QueryError)) throw error
    const message = `the database can't be used (${why}): correct DATABASE_URL`
    throw new QueryError(message, error.code, error.constraint, cause)
  }
}

const POOLED =
  'the address is that of a pooler which gives a connection another session for each transaction; ' +
  'Gatehouse needs sessions (LISTEN, time-outs): set pool_mode = session in PgBouncer'

/**
 * Why a pooler in front of the server can't be used, in one line; undefined if there is none, or
 * it keeps sessions. In transaction mode one connection of ours gets several server processes, or
 * two connections that are open at once get the same one. With a session for each connection
 * neither can happen. A pooler that takes the newest free process shows the second, and one that
 * takes the oldest shows the first. Several rounds: other clients may take it in between.
 */
export async function poolerFault(db: Database): Promise<string | undefined> {
  const processes = new Map<string, number>()
  const connections = new Map<number, string>()
  for (let round = 0; round < ROUNDS; round++) {
    for (const level of ['trusted', 'trusted', 'deliveries'] as const) {
      const { connection, process } = await serverQueries.readSession(db.at(level), {})
      if ((processes.get(connection) ?? process) !== process) return POOLED
      if ((connections.get(process) ?? connection) !== connection) return POOLED
      processes.set(connection, process)
      connections.set(process, connection)
    }
  }
  return undefined
}

const ROUNDS = 3

/**
 * How far a clock is ahead of the database's (negative: behind), and by how much that may be
 * wrong: by the quickest of a few round trips.
 */
export async function compareClocks(db: Executor, now: () => Date) {
  let best = { aheadMs: 0, doubtMs: Number.POSITIVE_INFINITY }
  for (let round = 0; round < ROUNDS; round++) {
    const asked = now().getTime()
    const { at } = await serverQueries.readClock(db, {})
    const answered = now().getTime()
    const doubtMs = (answered - asked) / 2
    if (doubtMs >= best.doubtMs) continue
    best = { aheadMs: asked + doubtMs - at.getTime(), doubtMs }
  }
  return best
}

/**
 * Why the tables do not fit this program's queries, in one line; none if every query could run.
 * Finds what was dropped or not restored: PostgreSQL parses each query against its tables.
 */
export async function faultsOfTables(db: Database): Promise<readonly string[]> {
  const broken: { name: string; reason: string }[] = []
  for (const query of allQueries()) {
    try {
      await db.describe(query)
    } catch (error) {
      if (!(error instanceof QueryError)) throw error
      broken.push({ name: query.name, reason: messageOf(error.cause) })
    }
  }
  const [first] = broken
  if (first === undefined) return []
  return [
    `${first.reason} (needed by ${broken.length} queries, such as ${first.name}): ` +
      'something was dropped, or the database was restored in part; restore the whole backup',
  ]
}

const PROBE_MS = 2_000

/** The running probe of each database. */
const probes = new WeakMap<Database, Promise<boolean>>()

/**
 * Whether the database answers within two seconds. Concurrent callers share one probe, because
 * anybody may ask and many must not take the database's time.
 */
export function databaseAnswers(db: Database): Promise<boolean> {
  const present = probes.get(db) ?? probe(db).finally(() => probes.delete(db))
  probes.set(db, present)
  return present
}

function probe(db: Database) {
  const late = sleep(PROBE_MS, false, { ref: false })
  // Any failure means the same to the caller: the database can't be used.
  const answer = db.ping().then(
    () => true,
    () => false,
  )
  return Promise.race([answer, late])
}
