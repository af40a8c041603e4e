import Type from 'typebox'
import type { Executor } from './client.ts'
import type { Query } from './queries.ts'
import { one, Timestamp } from './rows.ts'

const Facts = Type.Object({
  version: Type.String(),
  version_number: Type.Integer(),
  read_only: Type.Boolean(),
  encrypted: Type.Boolean(),
  encoding: Type.String(),
})
/** What a database server says of itself; `version_number` is 150003 for 15.3. */
export type ServerFacts = Type.Static<typeof Facts>

/** PostgreSQL 15, the oldest that is served. */
const OLDEST = 150_000

/** Why a server is too old, in one line; undefined when it is not. */
export function tooOld({ version, version_number }: ServerFacts): string | undefined {
  if (version_number >= OLDEST) return undefined
  return `the server is PostgreSQL ${version}; 15 or newer is needed`
}

const READ: Query = {
  name: 'readServerFacts',
  text: `select current_setting('server_version') as version,
  current_setting('server_version_num')::int4 as version_number,
  current_setting('transaction_read_only') = 'on' as read_only,
  coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false) as encrypted,
  current_setting('server_encoding') as encoding`,
  result: 'one',
  args: [],
  row: Facts,
}
const CLOCK: Query = {
  name: 'readClock',
  text: 'select clock_timestamp() as at',
  result: 'one',
  args: [],
  row: Type.Object({ at: Timestamp }),
}

/** The queries of this file, for the test that compares every declaration with a server's. */
export const serverQueries: readonly Query[] = [READ, CLOCK]

export function readServerFacts(db: Executor): Promise<ServerFacts> {
  return one(db, READ, [])
}

/** Why a database would not keep every text and byte as it is, in one line; undefined when it does. */
export function wronglyEncoded({ encoding }: ServerFacts): string | undefined {
  return encoding === 'UTF8'
    ? undefined
    : `the database has the encoding ${encoding}; make one with UTF8`
}

/** Throws an Error with one line for a server or a database that can't be used. */
export async function refuseUnfitServer(db: Executor): Promise<void> {
  const facts = await readServerFacts(db)
  const old = tooOld(facts)
  const unfit = old === undefined ? wronglyEncoded(facts) : `${old}: upgrade it`
  if (unfit !== undefined) throw new Error(unfit)
}

/** How far a clock is ahead of the database's (negative: behind), and by how much that may be wrong. */
export interface ClockDifference {
  readonly aheadMs: number
  readonly doubtMs: number
}

const ROUNDS = 3

/** Compares a clock with the database's by the quickest of a few round trips. */
export async function compareClocks(db: Executor, now: () => Date): Promise<ClockDifference> {
  let best: ClockDifference = { aheadMs: 0, doubtMs: Number.POSITIVE_INFINITY }
  for (let round = 0; round < ROUNDS; round++) {
    const asked = now().getTime()
    const { at } = await one<{ at: Date }>(db, CLOCK, [])
    const answered = now().getTime()
    const doubtMs = (answered - asked) / 2
    if (doubtMs < best.doubtMs) best = { aheadMs: asked + doubtMs - at.getTime(), doubtMs }
  }
  return best
}
